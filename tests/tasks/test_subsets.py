"""Named sets of languages, and which parts they want."""

from __future__ import annotations

import pytest

from isoglot.errors import IsoglotError
from isoglot.tasks.subsets import SUBSETS, codes_of, is_wanted, subset


def test_sets_have_as_many_languages_as_their_papers_say():
    sizes = {"xnli": 15, "tatoeba-14": 14, "tatoeba-36": 36, "xtreme": 40, "xtreme-pos": 33}
    assert {name: len(set(SUBSETS[name].split())) for name in sizes} == sizes
    assert set(subset("tatoeba-36")) == set(subset("xtreme")) - {"en", "ms", "my", "yo"}


def test_names_are_spelled_out_beside_codes():
    assert codes_of(["conll", " sw", "en-de", "de"]) == ("de", "en", "es", "nl", "sw", "en-de")
    with pytest.raises(IsoglotError, match="did you mean 'conll'"):
        codes_of(["conl"])


def test_a_pair_is_wanted_where_its_languages_other_than_english_are():
    assert is_wanted("en-sw", ("sw",))
    assert is_wanted("sw-en", ("sw", "en"))
    assert not is_wanted("en-de", ("sw", "en"))
    assert not is_wanted("de-sw", ("sw",))
    assert is_wanted("de-sw", None)
