"""Each byte has the offsets of its own character."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.tokenization.byte_pieces import is_byte_piece, split_byte_runs


def pieces(text: str) -> list[str]:
    return [f"<0x{byte:02X}>" for byte in text.encode()]


def test_a_byte_piece_is_told_from_other_tokens():
    assert is_byte_piece("<0xE0>")
    assert not any(map(is_byte_piece, ("<0xE>", "<s>", "0xE0", "<0xe0>", "▁<0xE0>")))


@settings(max_examples=30)
@given(st.text(st.characters(codec="utf-8"), min_size=2), st.integers(0, 5))
def test_bytes_of_a_run_have_their_characters_offsets(text, before):
    whole = "x" * before + text
    spans = [(before, len(whole))] * len(text.encode())
    found = split_byte_runs(pieces(text), spans, whole)
    expected = [before + n for n, character in enumerate(text) for _ in character.encode()]
    assert found == [(place, place + 1) for place in expected]


def test_a_normalized_run_is_aligned_with_the_original():
    """NFKC makes two characters of Thai's SARA AM."""
    text = "นำไป"
    written = pieces(unicodedata.normalize("NFKC", text))
    found = split_byte_runs(written, [(0, 4)] * len(written), text)
    assert found == [(0, 1)] * 3 + [(1, 2)] * 6 + [(2, 3)] * 3 + [(3, 4)] * 3


def test_other_tokens_and_neighboring_runs_are_left_alone():
    tokens = ["▁a", *pieces("ก"), *pieces("ข"), "<0x41>"]
    spans = [(0, 2), *[(2, 3)] * 3, *[(3, 4)] * 3, (4, 5)]
    assert split_byte_runs(tokens, spans, " aกขA") == spans


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_run_that_cannot_be_aligned_is_spread_over_its_characters(number):
    found = split_byte_runs(["<0x41>"] * number, [(3, 7)] * number, "xxxabcd")
    assert all(3 <= start < end <= 7 for start, end in found)
    assert found == sorted(found)
