"""Named sets of languages, and which parts they want."""

from __future__ import annotations

import pytest

from isoglot.errors import IsoglotError
from isoglot.tasks.language_sets import (
    LANGUAGE_SETS,
    absent_note,
    expand_languages,
    is_selected,
    language_set,
)


def test_sets_have_as_many_languages_as_their_papers_say():
    sizes = {"xnli": 15, "tatoeba-14": 14, "tatoeba-36": 36, "xtreme": 40, "xtreme-pos": 33}
    assert {name: len(set(LANGUAGE_SETS[name].split())) for name in sizes} == sizes
    assert set(language_set("tatoeba-36")) == set(language_set("xtreme")) - {"en", "ms", "my", "yo"}


def test_names_are_spelled_out_beside_codes():
    assert expand_languages(["conll", " sw", "en-de", "de"]) == (
        "de",
        "en",
        "es",
        "nl",
        "sw",
        "en-de",
    )
    with pytest.raises(IsoglotError, match="did you mean 'conll'"):
        expand_languages(["conl"])


def test_any_spelling_of_a_language_is_a_code():
    names = ["por", "nob", "zh-min-nan", "deu-eng", "zh-Hant", "simple", "en"]
    codes = ("pt", "no", "nan", "de-en", "zh_Hant", "en_simple", "en")
    assert expand_languages(names) == codes
    assert expand_languages(["pt", "por"]) == ("pt",)
    assert expand_languages(["swahili", "Hindi", "lao"]) == ("sw", "hi", "lo")
    for name in ("xnlii", "tatoeba-15", "", "en-"):
        with pytest.raises(IsoglotError, match="There is no language and no set of languages"):
            expand_languages([name])


def test_scores_under_another_spelling_are_wanted_too():
    assert is_selected("nb", ("no",))
    assert is_selected("nb-en", ("no",))
    assert is_selected("de-en", ("en-de",))
    assert not is_selected("de-en", ("en-sw",))


def test_languages_without_data_are_named_and_unknown_codes_refused():
    have = {"de-en", "sw-en", "fr"}
    assert absent_note(["sw", "en", "fra", "en-sw"], have) is None
    assert absent_note(["sw", "yo", "ja", "tum"], have) == (
        "there are no data of yo, ja, tum, only of de-en, fr, sw-en."
    )
    assert absent_note(["xnli"], have) is None, "a paper's set may have more than there are data of"
    assert absent_note(["xx"], ()) is None
    assert absent_note(["xx"], ["xx-en"]) is None, "data of any code may be scored"
    with pytest.raises(IsoglotError, match=r"'xx' is the code of no language .* de-en, fr, sw-en"):
        absent_note(["sw", "xx"], have)
    with pytest.raises(IsoglotError, match=r"'frx' is the code .* did you mean 'fr'"):
        absent_note(["frx"], have)
    with pytest.raises(IsoglotError, match=r"'swahilli'.* did you mean 'swahili'"):
        absent_note(["swahilli"], have)


def test_a_pair_is_wanted_where_its_languages_other_than_english_are():
    assert is_selected("en-sw", ("sw",))
    assert is_selected("sw-en", ("sw", "en"))
    assert not is_selected("en-de", ("sw", "en"))
    assert not is_selected("de-sw", ("sw",))
    assert is_selected("de-sw", None)
