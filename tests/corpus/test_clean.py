from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.corpus.clean import CleanConfig, normalise, why_dropped
from isoglot.corpus.heldout import split_of

CONFIG = CleanConfig(max_characters=100)


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
def test_normalise(text, expected):
    assert normalise(text) == expected


@given(st.text(st.characters(codec="utf-8")))
def test_normalised_text_is_normal(text):
    once = normalise(text)
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFC", once)
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
    ],
)
def test_why_dropped(texts, reason):
    assert why_dropped(texts, CONFIG) == reason


def test_chinese_is_not_too_short_for_english():
    english = "In the beginning God created the heavens and the earth, and all that is in them."
    assert why_dropped((english, "起初神创造天地和其中的一切。"), CONFIG) is None


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_pair_is_held_out_if_either_side_is(first, second):
    sides = {split_of((text,), share=0.5, seed=3) for text in (first, second)}
    expected = "heldout" if "heldout" in sides else "train"
    assert split_of((first, second), share=0.5, seed=3) == expected


def test_the_heldout_share_is_met_and_depends_on_the_seed():
    texts = [f"sentence {number}" for number in range(4000)]
    drawn = [[split_of((text,), share=0.1, seed=seed) for text in texts] for seed in (0, 1)]
    for splits in drawn:
        assert abs(splits.count("heldout") - 400) < 4 * (4000 * 0.1 * 0.9) ** 0.5
    assert drawn[0] != drawn[1]
    assert {split_of((text,), share=0.0, seed=0) for text in texts} == {"train"}
