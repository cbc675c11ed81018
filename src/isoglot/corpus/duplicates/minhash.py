"""MinHash signatures of many lines at once, compiled by numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


@numba.njit(cache=True)
def _mixed(word: Any) -> Any:
    """A bijection of 64-bit words that looks like chance (the finalizer of splitmix64)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True)
def signatures(
    characters: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
    bands: int,
    in_a_band: int,
    shingle: int,
    salt: Any,
) -> tuple[Words, Words]:
    """For each line its bands' keys (bands, lines), and the lowest bit of each of its hashes.

    A line shorter than a shingle is one shingle.
    """
    lines = len(ends)
    keys = np.empty((bands, lines), np.uint64)
    bits = np.zeros(lines, np.uint64)
    least = np.empty(bands * in_a_band, np.uint64)
    start = 0
    for line in range(lines):
        end = ends[line]
        least[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for first in range(start, max(end - shingle, start) + 1):
            piece = np.uint64(0)
            for place in range(first, min(first + shingle, end)):
                piece = _mixed(piece + np.uint64(characters[place]) + np.uint64(0x9E3779B97F4A7C15))
            for number in range(len(least)):
                hashed = _mixed(piece + np.uint64(number + 1) * np.uint64(0xD1B54A32D192ED03))
                least[number] = min(least[number], hashed)
        for band in range(bands):
            key = salt + np.uint64(band)
            for number in range(band * in_a_band, (band + 1) * in_a_band):
                key = _mixed(key ^ least[number])
                bits[line] |= (least[number] & np.uint64(1)) << np.uint64(number)
            keys[band, line] = key
        start = end
    return keys, bits
