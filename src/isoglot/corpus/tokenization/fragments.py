"""Words to fragments: the stretches of text that a piece of a vocabulary may lie in.

No piece of SentencePiece crosses a space or a change of script, so the pieces of a text are those
of its fragments: `▁hello,` has the fragments `▁hello` and `,`. Each distinct fragment is held once,
with its number of occurrences. Chinese characters and kana count as one script, digits, punctuation
and symbols as another; a combining mark belongs to the letter before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isoglot.corpus.cleaning.characters import (
    DIGIT,
    LAST_CODE,
    MARK,
    SIGN,
    class_table,
    script_class,
)
from isoglot.corpus.tokenization.vocabulary import SPACE_MARK
from isoglot.types import LongArray

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.types import BoolArray

Codes = npt.NDArray[np.uint32]

_SPACE_MARK = ord(SPACE_MARK)
_CODES = 0x110000
_MERGED = ("CJK", "HIRAGANA", "KATAKANA")
"""Scripts that one word may mix."""
_BASE = 0x9E3779B97F4A7C15
"""Of the polynomial that a fragment's hash is; odd, so that it has an inverse."""


@dataclass(frozen=True, slots=True)
class Fragments:
    """Distinct fragments of a text."""

    codes: Codes
    """The characters of all fragments, one after another."""
    ends: LongArray
    """Where each of them ends in `codes`."""
    counts: LongArray
    """How often each occurs."""
    characters: Codes
    """The characters that get a piece of their own, the most frequent first."""


def split_fragments(words: Mapping[str, int], coverage: float) -> Fragments:
    """The fragments of counted words, in an order that does not depend on theirs.

    The most frequent characters that make up a share of `coverage` of the text are covered. Others
    are left out; a fragment ends before them.
    """
    text = SPACE_MARK + SPACE_MARK.join(words)
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    counts = np.fromiter(words.values(), np.int64, len(words))
    lengths = np.fromiter(map(len, words), np.int64, len(words)) + 1
    characters = covered_characters(codes, np.repeat(counts, lengths), coverage)
    is_covered = np.zeros(_CODES, np.bool_)
    is_covered[characters] = True
    kept = is_covered[codes]
    first = _first_of_fragments(codes, kept)
    begins = np.flatnonzero(first)
    # the end of a fragment: where the next begins, or a character that is not covered
    stops = np.flatnonzero(first | ~kept)
    ends = np.append(stops, len(codes))[np.searchsorted(stops, begins) + 1]
    word_of = np.searchsorted(np.cumsum(lengths), begins, side="right")
    return _distinct(codes, begins, ends, counts[word_of], characters)


def covered_characters(codes: Codes, counts: LongArray, coverage: float) -> Codes:
    """The most frequent characters that make up this share of a text; the most frequent first."""
    totals = np.bincount(codes, weights=counts)
    order = np.lexsort((np.arange(len(totals)), -totals))
    order = order[: np.count_nonzero(totals)]
    before = np.cumsum(totals[order]) - totals[order]
    covered: Codes = order[before < coverage * totals.sum()].astype(np.uint32)
    return covered


def _first_of_fragments(codes: Codes, kept: BoolArray) -> BoolArray:
    """Which characters begin a fragment."""
    classes = class_table()[np.minimum(codes, LAST_CODE)]
    classes[classes == DIGIT] = SIGN
    for script in _MERGED[1:]:
        classes[classes == script_class(script)] = script_class(_MERGED[0])
    is_space = codes == _SPACE_MARK
    # a mark has the class of the last character before it that has one; after the mark of a space,
    # as after a space mark, every class is allowed
    has_class = (classes != MARK) & ~is_space
    places = np.arange(len(codes))
    last = np.maximum.accumulate(np.where(has_class, places, -1))
    previous = np.append(-1, last[:-1])
    word = np.maximum.accumulate(np.where(is_space, places, -1))
    inside = (previous > word) & has_class
    changes = inside & (classes[previous] != classes)
    after_gap = np.append(False, ~kept[:-1])
    return np.asarray(kept & (is_space | changes | after_gap))


def _distinct(
    codes: Codes, begins: LongArray, ends: LongArray, counts: LongArray, characters: Codes
) -> Fragments:
    """Each fragment once, in the order of 64-bit hashes of their characters."""
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.full(len(codes), _BASE, np.uint64))
        mixed = (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
        sums = np.append(np.uint64(0), np.cumsum(mixed * powers))
        inverse = np.uint64(pow(_BASE, -1, 1 << 64))
        unshift = np.cumprod(np.full(len(codes), inverse, np.uint64))
        hashes = (sums[ends] - sums[begins]) * unshift[begins]
    _, where, group = np.unique(hashes, return_index=True, return_inverse=True)
    totals = np.bincount(group, weights=counts).astype(np.int64)
    lengths = (ends - begins)[where]
    offsets = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) - np.repeat(offsets - begins[where], lengths)
    return Fragments(codes[places], np.cumsum(lengths), totals, characters)
