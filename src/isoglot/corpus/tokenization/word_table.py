"""A compiled hash table of words and their token ids.

A text is an array of code points; its words lie between single spaces. A word that is not in the
table is added at once, and its ids follow (`add`): so that all new words of many texts are encoded
together, each once. An entry of the pool is

    number of code points, times two, plus one for the first word of a text | number | code points

and a slot holds 32 bits of a word's hash and its place in the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from isoglot.types import BoolArray, IntArray, LongArray

    Codes = npt.NDArray[np.uint32]
    """Code points."""

SPACE = ord(" ")
_SLOTS = 1 << 20
_POOL = 1 << 23
"""Slots and 32-bit integers of a table; one that is full is emptied."""
_HEAD = 2
"""Integers before the code points of an entry."""
_HASH = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)


class Words(NamedTuple):
    """Words by their code points, one after another."""

    codes: Codes
    lengths: LongArray
    is_first: BoolArray
    """Which words begin a text; all false where that makes no difference."""

    def texts(self) -> list[str]:
        """The words as strings."""
        joined = self.codes.tobytes().decode("utf-32-le", "surrogatepass")
        ends = np.cumsum(self.lengths).tolist()
        return [joined[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def codes_of(texts: Sequence[str]) -> tuple[Codes, LongArray]:
    """The code points of all texts, concatenated, and the number of each text's."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    joined = "".join(texts).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(joined, np.uint32), lengths


class WordTable:
    """Words with their ids."""

    def __init__(self, *, marks_first: bool) -> None:
        """`marks_first`: whether the first word of a text is another word than the same later."""
        self.marks_first = marks_first
        self._clear(0)

    def _clear(self, needed: int) -> None:
        self._slots = np.zeros(max(_SLOTS, 1 << (2 * needed).bit_length()), np.uint64)
        self._pool = np.zeros(max(_POOL, 4 * needed), np.uint32)
        self._used = self._num_words = 0
        self._ids = np.zeros(0, np.int32)
        self._ends = np.zeros(1, np.int64)
        self._left = np.zeros(0, np.bool_)

    def find(self, codes: Codes, lengths: LongArray) -> tuple[IntArray, LongArray, Words]:
        """The numbers of all words, how many each text has, and the words that are new.

        A text with spaces that are not single, or none between words, has no words.
        """
        needed = len(codes) + len(lengths)  # words there could be, all of them new
        if self._used + 4 * needed > len(self._pool) or (
            self._num_words + needed > len(self._slots) // 2
        ):
            self._clear(needed)
        numbers, sizes, begins, spans, is_first, self._used = _find(
            codes, lengths, self._slots, self._pool, self._used, self._num_words, self.marks_first
        )
        new = Words(_copied(codes, begins, spans), spans, is_first)
        return numbers, sizes, new

    def add(self, ids: IntArray, counts: IntArray, left: BoolArray) -> None:
        """The ids of the new words, and which of them leave their texts to the library."""
        self._num_words += len(counts)
        self._ids = np.concatenate([self._ids, ids])
        self._ends = np.concatenate([self._ends, self._ends[-1] + np.cumsum(counts)])
        self._left = np.concatenate([self._left, left])

    def ids_of(self, numbers: IntArray, sizes: LongArray) -> tuple[IntArray, IntArray]:
        """The ids of texts of so many words, and the number of each; -1 where a text is left."""
        ids, counts = _ids_of(numbers, sizes, self._ids, self._ends, self._left)
        return ids, counts


@njit(nogil=True, cache=True)
def _find(
    codes: Codes,
    lengths: LongArray,
    slots: npt.NDArray[np.uint64],
    pool: npt.NDArray[np.uint32],
    used: int,
    num_words: int,
    marks_first: bool,  # noqa: FBT001
) -> tuple[
    IntArray, LongArray, LongArray, LongArray, BoolArray, int
]:  # pragma: no cover - compiled
    """Numbers, words of each text; begins, lengths and places of new words; what the pool holds."""
    room = len(lengths)
    for code in codes:
        room += code == SPACE
    numbers, sizes = np.empty(room, np.int32), np.zeros(len(lengths), np.int64)
    begins, spans = np.empty(room, np.int64), np.empty(room, np.int64)
    is_first = np.zeros(room, np.bool_)
    total, new, start = 0, 0, 0
    for text, length in enumerate(lengths):
        end, begin, before = start + length, start, total
        single = length > 0
        while begin <= end and single:
            place, hashed = _hash_word(codes, begin, end)
            single = place > begin
            if not single:
                break
            word, first = codes[begin:place], marks_first and begin == start
            head = np.uint32(2 * (place - begin) + first)
            hashed = (hashed ^ np.uint64(head)) * _HASH
            slot = _slot_of(word, head, hashed, slots, pool)
            if slots[slot] == np.uint64(0):
                slots[slot] = (hashed & ~_LOW) | np.uint64(used + 1)
                pool[used], pool[used + 1] = head, num_words + new
                for offset, code in enumerate(word):
                    pool[used + _HEAD + offset] = code
                used += _HEAD + len(word)
                begins[new], spans[new], is_first[new] = begin, len(word), first
                new += 1
            numbers[total] = pool[np.int64(slots[slot] & _LOW)]
            total += 1
            begin = place + 1
        if single:
            sizes[text] = total - before
        else:
            total = before
        start = end
    return (
        numbers[:total].copy(),
        sizes,
        begins[:new].copy(),
        spans[:new].copy(),
        is_first[:new].copy(),
        used,
    )


@njit(nogil=True, cache=True, inline="always")
def _hash_word(
    codes: Codes, begin: int, end: int
) -> tuple[int, np.uint64]:  # pragma: no cover - compiled
    """The end of the word that begins here, and a hash of it."""
    hashed, place = np.uint64(0), begin
    while place < end and codes[place] != SPACE:
        hashed = (hashed ^ np.uint64(codes[place])) * _HASH
        hashed ^= hashed >> np.uint64(29)
        place += 1
    return place, hashed


@njit(nogil=True, cache=True, inline="always")
def _slot_of(
    word: Codes,
    head: np.uint32,
    hashed: np.uint64,
    slots: npt.NDArray[np.uint64],
    pool: npt.NDArray[np.uint32],
) -> np.uint64:  # pragma: no cover - compiled
    """The slot of a word, or the empty one where it belongs."""
    mask = np.uint64(len(slots) - 1)
    slot = (hashed >> np.uint64(8)) & mask
    while slots[slot] != np.uint64(0):
        entry = np.int64(slots[slot] & _LOW) - 1
        if slots[slot] & ~_LOW == hashed & ~_LOW and pool[entry] == head:
            same = True
            for offset, code in enumerate(word):
                same &= pool[entry + _HEAD + offset] == code
            if same:
                break
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(nogil=True, cache=True)
def _copied(codes: Codes, begins: LongArray, spans: LongArray) -> Codes:  # pragma: no cover
    """The code points of some words."""
    copied, written = np.empty(spans.sum(), np.uint32), 0
    for begin, span in zip(begins, spans):  # noqa: B905 - numba knows no strict
        for place in range(begin, begin + span):
            copied[written] = codes[place]
            written += 1
    return copied


@njit(nogil=True, cache=True)
def _ids_of(
    numbers: IntArray, sizes: LongArray, pool: IntArray, ends: LongArray, left: BoolArray
) -> tuple[IntArray, IntArray]:  # pragma: no cover - compiled
    total = 0
    for number in numbers:
        total += ends[number + 1] - ends[number]
    ids, counts = np.empty(total, np.int32), np.empty(len(sizes), np.int32)
    written, word = 0, 0
    for text, size in enumerate(sizes):
        before, is_left = written, size == 0
        for number in numbers[word : word + size]:
            is_left |= left[number]
            for place in range(ends[number], ends[number + 1]):
                ids[written] = pool[place]
                written += 1
        word += size
        if is_left:
            written = before
        counts[text] = -1 if is_left else written - before
    return ids[:written], counts
