"""Compiled loops over token ids: every pair once, sorted by its smaller id, then added up by rows.

Counts are symmetric, so a pair (a, b) is kept once, in the row of the smaller id. A counting sort
brings the pairs of a row together, each as 32 bits (the larger id and the distance); one array as
long as the vocabulary then adds a row up without comparing anything.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

if TYPE_CHECKING:
    from isoglot.types import BoolArray, FloatArray, IntArray, LongArray

Packed = npt.NDArray[np.uint32]
Weights = npt.NDArray[np.uint32] | npt.NDArray[np.int64]
"""Sums of shares: of 32 bits wherever a chunk cannot have larger ones."""
Logs = npt.NDArray[np.float32]

_BITS = 4
_DISTANCE = (1 << _BITS) - 1
_FEW = 8
"""Ids are sorted by comparing where so many times their number is below the bit set's words."""
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
"""Multiplied by a power of two, its first six bits tell which power."""
_PLACES = np.zeros(64, np.int64)
for _power in range(64):
    _PLACES[(int(_DE_BRUIJN) << _power) % 2**64 >> 58] = _power


@njit(nogil=True, cache=True)
def tally(
    values: IntArray,
    offsets: IntArray,
    first: int,
    last: int,
    ordinary: BoolArray,
    window: int,
    sizes: LongArray,
) -> None:  # pragma: no cover - compiled
    """Add to `sizes` how many pairs of the rows [first, last) belong to each smaller id."""
    for row in range(first, last):
        end = offsets[row + 1]
        for i in range(offsets[row], end):
            a = values[i]
            if ordinary[a]:
                for j in range(i + 1, min(i + window + 1, end)):
                    b = values[j]
                    if ordinary[b]:
                        sizes[min(a, b)] += 1


@njit(nogil=True, cache=True)
def scatter(
    values: IntArray,
    offsets: IntArray,
    first: int,
    last: int,
    ordinary: BoolArray,
    window: int,
    places: LongArray,
    packed: Packed,
) -> None:  # pragma: no cover - compiled
    """Put every pair at the next place of its smaller id; `places` moves on."""
    for row in range(first, last):
        end = offsets[row + 1]
        for i in range(offsets[row], end):
            a = values[i]
            if ordinary[a]:
                for j in range(i + 1, min(i + window + 1, end)):
                    b = values[j]
                    if ordinary[b]:
                        place = places[min(a, b)]
                        packed[place] = np.uint32((max(a, b) << _BITS) | (j - i))
                        places[min(a, b)] = place + 1


@njit(nogil=True, cache=True)
def _in_order(
    touched: IntArray, number: int, bits: npt.NDArray[np.uint64]
) -> None:  # pragma: no cover - compiled
    """Sort the first `number` ids of `touched`; `bits` is zero before and after."""
    if number * _FEW < len(bits):
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
def add_up(
    packed: Packed,
    starts: LongArray,
    first: int,
    last: int,
    shares: LongArray,
    size: int,
    others: IntArray,
    weights: Weights,
    ends: LongArray,
) -> int:  # pragma: no cover - compiled
    """The sums of the rows [first, last): `others` ascending in a row, `weights`, and its `ends`.

    Gives the number of distinct pairs.
    """
    sums, touched = np.zeros(size, weights.dtype), np.empty(size, np.int32)
    bits = np.zeros((size >> 6) + 1, np.uint64)
    n = 0
    for row in range(first, last):
        number = 0
        for place in range(starts[row], starts[row + 1]):
            other, share = packed[place] >> _BITS, shares[packed[place] & _DISTANCE]
            if sums[other] == 0:
                touched[number] = other
                number += 1
            # a token beside itself is the neighbour of both
            sums[other] += 2 * share if other == row else share
        _in_order(touched, number, bits)
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
    """Add a row of a run to the sums of its language; gives how many places now hold something."""
    for place in range(start, stop):
        other = others[place]
        if sums[other] == 0:
            touched[number] = other
            number += 1
        sums[other] += weights[place]
    return number


@njit(nogil=True, cache=True)
def join(
    others: IntArray,
    weights: Weights,
    bounds: LongArray,
    first: int,
    languages: LongArray,
    constants: FloatArray,
    floor: float,
    size: int,
    keys: LongArray,
    logs: Logs,
) -> int:  # pragma: no cover - compiled
    """Add the same rows of several runs: integers in a language first, then times its constant.

    Row r of run k, whose number is `first` + r, lies at `bounds[k, r]` to `bounds[k, r + 1]`; the
    runs of a language follow each other. Gives the number of pairs that reach the floor, whose keys
    and logs of counts are then in `keys` and `logs`.
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
            _in_order(found, number, bits)
        for other in found[:number]:
            if totals[other] >= floor:
                keys[n], logs[n] = np.int64(row) * size + other, math.log(totals[other])
                n += 1
            totals[other] = 0
    return n
