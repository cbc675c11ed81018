"""Compiled loops over all segmentations of fragments: the lattice of a unigram model's training.

An edge is an occurrence of a piece: the edges that begin at a character lie between two entries of
`first`, with the piece and the number of characters of each. Fragments lie one after another, and
none of their edges leaves them. All sums run in the order of the fragments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    import numpy.typing as npt

    from isoglot.types import FloatArray, IntArray, LongArray

    Lengths = npt.NDArray[np.uint8]

MAX_LENGTH = 16
"""Characters of the longest piece."""
_SMALL = 1e-80
_SCALE = 1e100
_HASH = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True)
def number_keys(
    keys: npt.NDArray[np.uint64],
) -> tuple[IntArray, LongArray]:  # pragma: no cover - compiled
    """The number of each key, counted by first occurrence, and where each number occurs first."""
    size = 16
    while size < 2 * len(keys):
        size *= 2
    slots, mask = np.full(size, -1, np.int32), np.uint64(size - 1)
    numbers, where = np.empty(len(keys), np.int32), np.empty(len(keys), np.int64)
    found = 0
    for place in range(len(keys)):
        key = keys[place]
        slot = ((key * _HASH) >> np.uint64(20)) & mask
        while slots[slot] >= 0 and keys[where[slots[slot]]] != key:
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = found
            where[found] = place
            found += 1
        numbers[place] = slots[slot]
    return numbers, where[:found].copy()


@njit(nogil=True, cache=True)
def expected_counts(
    ends: LongArray,
    counts: LongArray,
    first: LongArray,
    pieces: IntArray,
    lengths: Lengths,
    probabilities: FloatArray,
    begin: int,
    end: int,
) -> FloatArray:  # pragma: no cover - compiled
    """The expected occurrences of each piece in the fragments from `begin` to `end`.

    Forward and backward sums of probabilities are multiplied by 1e100 as soon as they are small:
    the sums in a window of `MAX_LENGTH` characters, which all later ones are made of.
    """
    expected = np.zeros(len(probabilities))
    longest = 0
    for number in range(begin, end):
        start = ends[number - 1] if number else 0
        longest = max(longest, ends[number] - start)
    forward, backward = np.empty(longest + 1), np.empty(longest + 1)
    scales = np.empty(longest + 1, np.int64)
    for number in range(begin, end):
        start = ends[number - 1] if number else 0
        size = ends[number] - start
        forward[: size + 1], forward[0], scale = 0.0, 1.0, 0
        for place in range(size):
            if forward[place] < _SMALL:
                scale += _rescale(forward[place : min(place + MAX_LENGTH, size + 1)])
            scales[place] = scale
            so_far = forward[place]
            for edge in range(first[start + place], first[start + place + 1]):
                forward[place + lengths[edge]] += so_far * probabilities[pieces[edge]]
        total = counts[number] / forward[size]
        backward[size], remaining = 1.0, scale
        for place in range(size - 1, -1, -1):
            if backward[place + 1] < _SMALL:
                remaining -= _rescale(backward[place + 1 : min(place + MAX_LENGTH, size) + 1])
            factor = total * forward[place]
            if scales[place] != remaining:
                factor *= _SCALE ** (remaining - scales[place])
            rest = 0.0
            for edge in range(first[start + place], first[start + place + 1]):
                after = probabilities[pieces[edge]] * backward[place + lengths[edge]]
                expected[pieces[edge]] += factor * after
                rest += after
            backward[place] = rest
    return expected


@njit(nogil=True, cache=True)
def _rescale(window: FloatArray) -> int:  # pragma: no cover - compiled
    """Multiplies sums that are small; returns whether it did."""
    if window.max() >= _SMALL:
        return 0
    window *= _SCALE
    return 1


@njit(nogil=True, cache=True)
def best_counts(
    ends: LongArray,
    counts: LongArray,
    first: LongArray,
    pieces: IntArray,
    lengths: Lengths,
    scores: FloatArray,
    begin: int,
    end: int,
) -> LongArray:  # pragma: no cover - compiled
    """The occurrences of each piece in the best segmentations of fragments."""
    found = np.zeros(len(scores), np.int64)
    longest = 0
    for number in range(begin, end):
        start = ends[number - 1] if number else 0
        longest = max(longest, ends[number] - start)
    best, edge_to = np.empty(longest + 1), np.empty(longest + 1, np.int64)
    for number in range(begin, end):
        start = ends[number - 1] if number else 0
        size = ends[number] - start
        _search(start, size, first, pieces, lengths, scores, -1, best, edge_to)
        place = size
        while place > 0:
            edge = edge_to[place]
            found[pieces[edge]] += counts[number]
            place -= lengths[edge]
    return found


@njit(nogil=True, cache=True)
def _search(
    start: int,
    size: int,
    first: LongArray,
    pieces: IntArray,
    lengths: Lengths,
    scores: FloatArray,
    excluded: int,
    best: FloatArray,
    edge_to: LongArray,
) -> None:  # pragma: no cover - compiled
    """Finds the best path to each place of a stretch of characters, without one piece."""
    best[: size + 1], best[0] = -np.inf, 0.0
    for place in range(size):
        for edge in range(first[start + place], first[start + place + 1]):
            after = place + lengths[edge]
            if after > size:
                break
            if pieces[edge] != excluded:
                score = best[place] + scores[pieces[edge]]
                if score > best[after]:
                    best[after], edge_to[after] = score, edge


@njit(nogil=True, cache=True)
def removal_losses(
    where: LongArray,
    sizes: Lengths,
    first: LongArray,
    pieces: IntArray,
    lengths: Lengths,
    scores: FloatArray,
    counts: LongArray,
    begin: int,
    end: int,
) -> FloatArray:  # pragma: no cover - compiled
    """How much log-likelihood the removal of each piece from `begin` to `end` costs.

    A removed piece is replaced by its best segmentation into others, whose counts grow by its own.
    The loss is infinite for a character, and minus infinity for a piece that occurs in no best
    segmentation or is itself better split.
    """
    losses = np.full(end - begin, np.inf)
    best, edge_to = np.empty(MAX_LENGTH + 1), np.empty(MAX_LENGTH + 1, np.int64)
    total = counts.sum()
    for piece in range(begin, end):
        size = np.int64(sizes[piece])
        if size == 1:
            continue
        if counts[piece]:
            _search(where[piece], size, first, pieces, lengths, scores, piece, best, edge_to)
        if counts[piece] == 0 or best[size] > scores[piece]:
            losses[piece - begin] = -np.inf
            continue
        place, number, others = size, 0, 0.0
        while place > 0:
            edge = edge_to[place]
            others += np.log(counts[pieces[edge]] + counts[piece])
            number += 1
            place -= lengths[edge]
        after = total + counts[piece] * (number - 1)
        own = np.log(counts[piece]) - np.log(total)
        losses[piece - begin] = counts[piece] * (own - others + number * np.log(after))
    return losses


@njit(nogil=True, cache=True)
def keep_edges(
    first: LongArray, pieces: IntArray, lengths: Lengths, new_numbers: IntArray
) -> int:  # pragma: no cover - compiled
    """Renumbers the pieces of all edges in place; -1 removes one. Returns how many are left."""
    written, edge = 0, 0
    for place in range(len(first) - 1):
        stop = first[place + 1]
        while edge < stop:
            piece = new_numbers[pieces[edge]]
            if piece >= 0:
                pieces[written], lengths[written] = piece, lengths[edge]
                written += 1
            edge += 1
        first[place + 1] = written
    return written


@njit(nogil=True, cache=True)
def fill_edges(
    places: LongArray,
    found: IntArray,
    length: int,
    next_edge: LongArray,
    pieces: IntArray,
    lengths: Lengths,
) -> None:  # pragma: no cover - compiled
    """Writes the edges of one length; `next_edge` of a place is where its next edge goes."""
    for number in range(len(places)):
        edge = next_edge[places[number]]
        pieces[edge], lengths[edge] = found[number], length
        next_edge[places[number]] = edge + 1
