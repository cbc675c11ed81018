"""Compiled loops of unigram segmentation: a trie of pieces, and the best path through a word.

The order of comparisons and the double precision are those of the tokenizers library, so that ties
between segmentations fall as there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from isoglot.corpus.tokenization.vocabulary import SPACE_MARK

if TYPE_CHECKING:
    import numpy.typing as npt

    from isoglot.corpus.tokenization.word_table import Codes
    from isoglot.types import FloatArray, IntArray, LongArray

_SPACE_MARK = ord(SPACE_MARK)
_CHARACTER_BITS = 21
_HASH = np.uint64(0x9E3779B97F4A7C15)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(nogil=True, cache=True)
def num_bytes(code: int) -> int:  # pragma: no cover - compiled
    """The bytes of a character in UTF-8."""
    if code < 0x80:
        return 1
    if code < 0x800:
        return 2
    return 3 if code < 0x10000 else 4


@njit(nogil=True, cache=True)
def build_trie(
    codes: Codes, lengths: LongArray
) -> tuple[npt.NDArray[np.uint64], IntArray, IntArray]:  # pragma: no cover - compiled
    """A trie of pieces: a hash table of (node, character) -> node, and the piece of each node."""
    size = 16
    while size < 2 * len(codes):
        size *= 2
    keys, children = np.full(size, _EMPTY, np.uint64), np.zeros(size, np.int32)
    piece_of = np.full(len(codes) + 1, -1, np.int32)
    num_nodes, start = 1, 0
    for number, length in enumerate(lengths):
        node = 0
        for place in range(start, start + length):
            slot, found = find_child(keys, node, codes[place])
            if not found:
                keys[slot] = _key(node, codes[place])
                children[slot] = num_nodes
                num_nodes += 1
            node = children[slot]
        piece_of[node] = number
        start += length
    # a table of the size that is needed stays in the processor's cache
    needed = 16
    while needed < 2 * num_nodes:
        needed *= 2
    if needed == size:
        return keys, children, piece_of[:num_nodes]
    small_keys, small_children = np.full(needed, _EMPTY, np.uint64), np.zeros(needed, np.int32)
    for old in range(size):
        if keys[old] != _EMPTY:
            parent = np.int64(keys[old] >> np.uint64(_CHARACTER_BITS))
            character = np.uint32(keys[old] & np.uint64((1 << _CHARACTER_BITS) - 1))
            slot, _ = find_child(small_keys, parent, character)
            small_keys[slot], small_children[slot] = keys[old], children[old]
    return small_keys, small_children, piece_of[:num_nodes]


@njit(nogil=True, cache=True, inline="always")
def _key(node: int | np.int64, character: int) -> np.uint64:  # pragma: no cover - compiled
    return (np.uint64(node) << np.uint64(_CHARACTER_BITS)) | np.uint64(character)


@njit(nogil=True, cache=True)
def find_child(
    keys: npt.NDArray[np.uint64], node: int | np.int64, character: int
) -> tuple[np.int64, bool]:  # pragma: no cover - compiled
    """The slot of the child of a trie's node, and whether it is there."""
    key, mask = _key(node, character), np.uint64(len(keys) - 1)
    slot = ((key * _HASH) >> np.uint64(20)) & mask
    while keys[slot] != _EMPTY and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot), keys[slot] == key


@njit(nogil=True, cache=True)
def segment(
    codes: Codes,
    lengths: LongArray,
    keys: npt.NDArray[np.uint64],
    children: IntArray,
    piece_of: IntArray,
    scores: FloatArray,
    unknown_score: float,
    unknown: int,
    byte_ids: IntArray,
) -> tuple[IntArray, IntArray]:  # pragma: no cover - compiled
    """The ids of words, and the number of each; a word with a length of -n - 1 is passed over."""
    total = 0
    for length in lengths:
        total += max(length, 0)
    # a character has an id at most, or its bytes, and so has the mark of the space before
    out = np.empty(5 * total + 2 * len(lengths) + 8, np.int32)
    counts = np.zeros(len(lengths), np.int32)
    longest = 1
    for length in lengths:
        longest = max(longest, length + 1)
    word, best = np.empty(longest, np.uint32), np.empty(longest + 1)
    begins, ids = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int32)
    written, start = 0, 0
    for number, length in enumerate(lengths):
        if length < 0:
            start += -length - 1
            continue
        before = written
        word[0] = _SPACE_MARK
        for place in range(length):
            word[place + 1] = codes[start + place]
        written = _best_path(
            word[: length + 1],
            keys,
            children,
            piece_of,
            scores,
            unknown_score,
            unknown,
            byte_ids,
            best,
            begins,
            ids,
            out,
            written,
        )
        counts[number] = written - before
        start += length
    return out[:written].copy(), counts


@njit(nogil=True, cache=True)
def _best_path(
    word: Codes,
    keys: npt.NDArray[np.uint64],
    children: IntArray,
    piece_of: IntArray,
    scores: FloatArray,
    unknown_score: float,
    unknown: int,
    byte_ids: IntArray,
    best: FloatArray,
    begins: LongArray,
    ids: IntArray,
    out: IntArray,
    written: int,
) -> int:  # pragma: no cover - compiled
    """Write the ids of a word's best segmentation."""
    _search(word, keys, children, piece_of, scores, unknown_score, unknown, best, begins, ids)
    # from the last piece back to the first, then turned around
    first, end, in_unknown = written, len(word), False
    while end > 0:
        begin = begins[end]
        if ids[end] != unknown:
            out[written] = ids[end]
            written += 1
            in_unknown = False
        elif byte_ids[0] >= 0:
            written = _write_bytes(word[begin], byte_ids, out, written)
        elif not in_unknown:  # neighboring unknown characters are one token
            out[written] = unknown
            written += 1
            in_unknown = True
        end = begin
    last = written - 1
    while first < last:
        out[first], out[last] = out[last], out[first]
        first, last = first + 1, last - 1
    return written


@njit(nogil=True, cache=True)
def _search(
    word: Codes,
    keys: npt.NDArray[np.uint64],
    children: IntArray,
    piece_of: IntArray,
    scores: FloatArray,
    unknown_score: float,
    unknown: int,
    best: FloatArray,
    begins: LongArray,
    ids: IntArray,
) -> None:  # pragma: no cover - compiled
    """Find for each place of a word the best piece that ends there; of equal ones, the first."""
    size = len(word)
    best[0], begins[: size + 1] = 0.0, -1
    for begin in range(size):
        has_single, node = False, 0
        for place in range(begin, size):
            slot, found = find_child(keys, node, word[place])
            if not found:
                break
            node = children[slot]
            piece = piece_of[node]
            if piece < 0:
                continue
            end, score = place + 1, scores[piece] + best[begin]
            if begins[end] < 0 or score > best[end]:
                best[end], begins[end], ids[end] = score, begin, piece
            has_single = has_single or place == begin
        if not has_single:
            score = unknown_score + best[begin]
            if begins[begin + 1] < 0 or score > best[begin + 1]:
                best[begin + 1], begins[begin + 1], ids[begin + 1] = score, begin, unknown


@njit(nogil=True, cache=True)
def _write_bytes(
    code: int, byte_ids: IntArray, out: IntArray, written: int
) -> int:  # pragma: no cover - compiled
    """Write the ids of a character's bytes in UTF-8, the last first."""
    size = num_bytes(code)
    rest = np.int64(code)
    for number in range(size):
        if number == size - 1:
            lead = 0 if size == 1 else (0xF00 >> size) & 0xFF
            out[written] = byte_ids[lead | rest]
        else:
            out[written] = byte_ids[0x80 | (rest & 0x3F)]
            rest >>= 6
        written += 1
    return written
