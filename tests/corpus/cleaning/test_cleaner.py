from __future__ import annotations

import unicodedata
from hashlib import blake2b

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isoglot.corpus.cleaning.characters import CHANGES, LAST_CODE, MARK, stability_table
from isoglot.corpus.cleaning.cleaner import (
    DROP_REASONS,
    PAIR_CHECKS,
    TEXT_CHECKS,
    CleanConfig,
    Cleaner,
    Side,
)
from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.cleaning.stage import held_out
from isoglot.corpus.scripts import script_of
from isoglot.errors import RecipeError
from tests.corpus.sentences import SENTENCES

CONFIG = CleanConfig(max_characters=100)
TEXTS = st.text(st.characters(), max_size=40)


def why_dropped(texts, settings, languages=()):
    return Cleaner(settings, languages or ("",) * len(texts)).clean([texts])[1][0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  two \t words\u00a0\u3000here ", "two words here"),
        ("nul\x00l and \x1b[0m", "null and [0m"),
        ("e\u0301te\u0301", "été"),
        ("zero\u200bwidth\ufeff\u00ad", "zerowidth"),
        ("a▁b", "a b"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("line\u2028separator\x85", "line separator"),
    ],
)
def test_normalize(text, expected):
    assert normalize_text(text) == expected


def test_normalize_can_fold():
    assert normalize_text("ﬁne x² Ｆ") == "ﬁne x² Ｆ"
    assert normalize_text("ﬁne x² Ｆ", "NFKC") == "fine x2 F"
    cleaner = Cleaner(CleanConfig(unicode="NFKC"), ("en",))
    assert cleaner.clean([("ﬁne",), ("fine",)]) == ([("fine",), ("fine",)], [None, None])


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@given(text=st.text(st.characters(codec="utf-8")))
def test_normalized_text_is_normal(form, text):
    once = normalize_text(text, form)
    assert normalize_text(once, form) == once
    assert unicodedata.is_normalized(form, once)
    assert once.split() == once.split(" ") or once == ""
    assert not any(unicodedata.category(character) == "Cc" for character in once)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (("fine",), None),
        (("",), "empty"),
        (("x" * 101,), "too long"),
        (("a house", "ein Haus"), None),
        (("", "ein Haus"), "empty"),
        (("OK", "OK"), "identical"),
        (("Yes.", "Das will ich wohl meinen."), None),
        (("My word", "word " * 20), None),
        (("word " * 8, "x" * 100), None),
        (("x" * 6, "ж" * 80), "length ratio"),
        (("no", "x" * 30), "near-empty"),
        (("Broken \ufffd here",), "encoding"),
        (("half a character \ud83d",), "encoding"),
        (("2012-03-18",), "few letters"),
        (("→ 10.5 % (+3)",), "few letters"),
        (("It costs 25.00 $ today",), None),
        (("fine", "..."), "few letters"),
    ],
)
def test_why_dropped(texts, reason):
    assert why_dropped(texts, CONFIG) == reason


@pytest.mark.parametrize(
    ("texts", "languages", "reason"),
    [
        (("Просто текст",), ("en",), "script"),
        (("Просто текст",), ("ru",), None),
        (("Просто текст",), ("xx",), None),
        (("Просто текст",), ("sr",), None),
        (("Просто текст",), ("sr_Latn",), "script"),
        (("Просто текст",), ("ro_Cyrl",), None),
        (("Alexandre 经常去超级市场。",), ("zh",), None),
        (("これはペンです",), ("ja",), None),
        (("これはペンです",), ("zh",), "script"),
        (("Ｆｕｌｌ ｗｉｄｔｈ",), ("en",), None),
        (("a house", "дом"), ("en", "ru"), None),
        (("a house", "дом"), ("ru", "en"), "script"),
    ],
)
def test_the_script_must_be_one_of_the_languages_own(texts, languages, reason):
    assert why_dropped(texts, CleanConfig(), languages) == reason


@pytest.mark.parametrize("language", SENTENCES)
def test_good_sentences_are_kept(language):
    sentences = [(text,) for text in SENTENCES[language].split(". ")]
    assert set(Cleaner(CleanConfig(), (language,)).clean(sentences)[1]) == {None}


def test_chinese_is_not_too_short_for_english():
    english = "In the beginning God created the heavens and the earth, and all that is in them."
    assert why_dropped((english, "起初神创造天地和其中的一切。"), CONFIG) is None


def test_short_texts_can_be_dropped():
    assert why_dropped(("word",), CleanConfig(min_characters=5)) == "too short"
    assert why_dropped(("words",), CleanConfig(min_characters=5)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_letter_share": 2.0},
        {"max_length_ratio": 0.5},
        {"max_characters": 0},
        {"near_empty_bytes": -1},
    ],
)
def test_settings_that_cannot_work(wrong):
    with pytest.raises(RecipeError, match=f"{next(iter(wrong))} must be"):
        CleanConfig(**wrong)


@settings(max_examples=60)
@given(records=st.lists(st.tuples(TEXTS, TEXTS), max_size=12), cut=st.integers(0, 12))
def test_reasons_do_not_depend_on_the_batch(records, cut):
    cleaner = Cleaner(CONFIG, ("en", "ru"))
    texts, whole = cleaner.clean(records)
    assert whole == cleaner.clean(records[:cut])[1] + cleaner.clean(records[cut:])[1]
    assert whole == [why_dropped(record, CONFIG, ("en", "ru")) for record in records]
    assert texts == [tuple(map(normalize_text, record)) for record in records]
    # nor on whether the texts were normalized before
    assert cleaner.clean(texts) == (texts, whole)


NEAR_SPACES = st.text(
    st.sampled_from("ab  \u00a0\t▁\u200bé") | st.characters(codec="utf-8"), max_size=12
)
COMBINING = st.text(
    st.sampled_from("aeᄀ가ক" + "\u0301\u0327\u1161\u11a8\u09be\u0344ﬁ "), max_size=8
)


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@settings(max_examples=300)
@given(texts=st.lists(TEXTS | NEAR_SPACES | COMBINING, max_size=8))
@example(texts=["", " ", "a", " a", "a ", "a  b", "a b", "가\u11a8", "\u1100\u1161"])
def test_texts_are_normalized_and_counted_as_one_by_one(form, texts):
    side = Side(texts, "en", form)
    side.normalize()
    expected = [normalize_text(text, form) for text in texts]
    assert side.texts == expected
    again = Side(expected, "en", form)
    assert side.bytes.tolist() == again.bytes.tolist()
    assert side.characters.tolist() == [len(text) for text in expected]
    assert side.within(MARK).tolist() == again.within(MARK).tolist()


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_every_character_that_normalization_changes_is_known(form):
    table = stability_table(form)
    stable = [chr(code) for code in range(LAST_CODE) if table[code] < CHANGES]
    assert len(stable) > 150_000
    # after a letter, a Korean consonant and syllable, and a Bengali vowel sign
    for before in ("x", "a", "\u1100", "가", "\u09c7"):
        texts = [f"{before}{character}x" for character in stable]
        assert [normalize_text(text, form) for text in texts] == texts


@settings(max_examples=100)
@given(texts=st.lists(TEXTS, max_size=6))
def test_characters_are_counted_as_one_by_one(texts):
    counted = Side(texts, "ru")
    marks = ("Mn", "Mc", "Cf")
    for index, text in enumerate(texts):
        assert counted.characters[index] == len(text)
        assert counted.bytes[index] == len(text.encode("utf-8", "surrogatepass"))
        letters = sum(
            c.isalpha() or unicodedata.category(c) in marks for c in text if c < "\U00032000"
        )
        assert counted.within(MARK)[index] == letters
        cyrillic = sum(c.isalpha() and script_of(c) == "CYRILLIC" for c in text)
        assert counted.of_scripts(["CYRILLIC"])[index] == cyrillic


def test_every_reason_is_explained():
    assert set(TEXT_CHECKS) | set(PAIR_CHECKS) | {"language"} <= set(DROP_REASONS)


def is_held_out(texts, share, seed):
    """The slow, obvious version."""
    key = seed.to_bytes(8, "little", signed=True)
    digests = (blake2b(text.encode(), digest_size=8, key=key).digest() for text in texts)
    return any(int.from_bytes(digest, "little") < int(share * 2**64) for digest in digests)


@given(
    st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5),
    st.floats(0, 1),
    st.integers(-5, 5),
)
@example([("a", "b")], 1.0, 0)
def test_records_are_held_out_by_a_hash_of_either_side(records, share, seed):
    expected = [is_held_out(texts, share, seed) for texts in records]
    columns = [[text.encode() for text in column] for column in zip(*records, strict=True)]
    assert held_out(columns, share=share, seed=seed).tolist() == expected


def test_the_heldout_share_is_met_and_depends_on_the_seed():
    texts = [[b"sentence %d" % number for number in range(4000)]]
    drawn = [held_out(texts, share=0.1, seed=seed) for seed in (0, 1)]
    for heldout in drawn:
        assert abs(heldout.sum() - 400) < 4 * (4000 * 0.1 * 0.9) ** 0.5
    assert (drawn[0] != drawn[1]).any()
    assert not held_out(texts, share=0.0, seed=0).any()
