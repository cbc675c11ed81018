"""Compiled loops of pair counting: a counting sort by the smaller id, then sums of each row.

Counts are symmetric, so a pair (a, b) is stored once, in the row of the smaller id. A counting sort
groups the pairs of a row, each packed in 32 bits (larger id and distance); a dense array as long as
the vocabulary then sums a row without comparisons.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

if TYPE_CHECKING:
    from isoglot.types import BoolArray, FloatArray, IntArray, LongArray

PackedPairs = npt.NDArray[np.uint32]
Weights = npt.NDArray[np.uint32] | npt.NDArray[np.int64]
"""Integer sums: 32 bits where a chunk cannot have larger ones."""
Logs = npt.NDArray[np.float32]

_BITS = 4
_DISTANCE = (1 << _BITS) - 1
_SORT_FACTOR = 8
"""Ids are sorted by comparison if `_SORT_FACTOR` × their number is below the bit set's words."""
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
"""The first six bits of its product with a power of two identify the power."""
_PLACES = np.zeros(64, np.int64)
for _power in range(64):
    _PLACES[(int(_DE_BRUIJN) << _power) % 2**64 >> 58] = _power


@njit(nogil=True, cache=True)
def count_ordinary(values: IntArray, ordinary: BoolArray) -> int:  # pragma: no cover - compiled
    """How many of these ids are ordinary."""
    number = 0
    for value in values:
        number += ordinary[value]
    return number


@njit(nogil=True, cache=True)
def place_pairs(
    values: IntArray,
    offsets: IntArray,
    first: int,
    last: int,
    ordinary: BoolArray,
    window: int,
    places: LongArray,
    packed: PackedPairs,
) -> None:  # pragma: no cover - compiled
    """One pass of the counting sort over the pairs of the sentences [first, last).

    Advances `places` of the smaller id for every pair. An empty `packed` counts only; otherwise
    each pair is written at its place.
    """
    writes = len(packed) > 0
    for sentence in range(first, last):
        end = offsets[sentence + 1]
        for i in range(offsets[sentence], end):
            a = values[i]
            if ordinary[a]:
                for j in range(i + 1, min(i + window + 1, end)):
                    b = values[j]
                    if ordinary[b]:
                        row = min(a, b)
                        if writes:
                            packed[places[row]] = np.uint32((max(a, b) << _BITS) | (j - i))
                        places[row] += 1


@njit(nogil=True, cache=True)
def _sort_ids(
    touched: IntArray, number: int, bits: npt.NDArray[np.uint64]
) -> None:  # pragma: no cover - compiled
    """Sorts the first `number` ids of `touched`; `bits` is zero before and after."""
    if number * _SORT_FACTOR < len(bits):
        touched[:number].sort()
        return
    for place in range(number):
        bits[touched[place] >> 6] |= np.uint64(1) << np.uint64(touched[place] & 63)
    n = 0
    for word in range(len(bits)):
        left = bits[word]
        bits[word] = 0
        while left:
            lowest = left & (~left + np.uint64(1))
            touched[n] = (word << 6) + _PLACES[(lowest * _DE_BRUIJN) >> np.uint64(58)]
            n += 1
            left ^= lowest


@njit(nogil=True, cache=True)
def sum_rows(
    packed: PackedPairs,
    starts: LongArray,
    first: int,
    last: int,
    numerators: LongArray,
    size: int,
    others: IntArray,
    weights: Weights,
    ends: LongArray,
) -> int:  # pragma: no cover - compiled
    """Sums the rows [first, last) into `others` (ascending in a row), `weights` and `ends`.

    Gives the number of distinct pairs.
    """
    sums, touched = np.zeros(size, weights.dtype), np.empty(size, np.int32)
    bits = np.zeros((size >> 6) + 1, np.uint64)
    n = 0
    for row in range(first, last):
        number = 0
        for place in range(starts[row], starts[row + 1]):
            other, numerator = packed[place] >> _BITS, numerators[packed[place] & _DISTANCE]
            if sums[other] == 0:
                touched[number] = other
                number += 1
            # a token beside itself is a neighbor in both directions
            sums[other] += 2 * numerator if other == row else numerator
        _sort_ids(touched, number, bits)
        for other in touched[:number]:
            others[n], weights[n] = other, sums[other]
            sums[other] = 0
            n += 1
        ends[row - first] = n
    return n


@njit(nogil=True, cache=True)
def _add_run(
    others: IntArray,
    weights: Weights,
    start: int,
    stop: int,
    sums: LongArray,
    touched: IntArray,
    number: int,
) -> int:  # pragma: no cover - compiled
    """Adds a row of a run to the sums of its language; gives the number of nonzero sums."""
    for place in range(start, stop):
        other = others[place]
        if sums[other] == 0:
            touched[number] = other
            number += 1
        sums[other] += weights[place]
    return number


@njit(nogil=True, cache=True)
def merge_rows(
    others: IntArray,
    weights: Weights,
    bounds: LongArray,
    first: int,
    languages: LongArray,
    constants: FloatArray,
    min_count: float,
    size: int,
    keys: LongArray,
    logs: Logs,
) -> int:  # pragma: no cover - compiled
    """Merges the same rows of several runs: integer sums in a language, then times its constant.

    Row `first` + r of run k lies at `bounds[k, r]` to `bounds[k, r + 1]`; runs of one language are
    neighbors. Gives the number of pairs that reach `min_count`; `keys` and `logs` hold them.
    """
    sums, touched = np.zeros(size, np.int64), np.empty(size, np.int32)
    totals, found = np.zeros(size, np.float64), np.empty(size, np.int32)
    bits = np.zeros((size >> 6) + 1, np.uint64)
    n = 0
    for r in range(bounds.shape[1] - 1):
        row, number, ascending = first + r, 0, True
        k = 0
        while k < len(languages):
            language, number_here = languages[k], 0
            while k < len(languages) and languages[k] == language:
                number_here = _add_run(
                    others, weights, bounds[k, r], bounds[k, r + 1], sums, touched, number_here
                )
                k += 1
            for other in touched[:number_here]:
                if totals[other] == 0:
                    ascending &= number == 0 or found[number - 1] < other
                    found[number] = other
                    number += 1
                totals[other] += constants[language] * sums[other]
                sums[other] = 0
        if not ascending:
            _sort_ids(found, number, bits)
        for other in found[:number]:
            if totals[other] >= min_count:
                keys[n], logs[n] = np.int64(row) * size + other, math.log(totals[other])
                n += 1
            totals[other] = 0
    return n
