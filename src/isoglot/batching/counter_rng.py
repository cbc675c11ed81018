"""Counter-based random numbers: the n-th value of a key, without the values before it.

    key_of("text", 0)           a key: 64 bits from names and numbers
    uniform(key, counters)      a number in [0, 1) for each counter
    permute(n, key, indices)    a permutation of range(n), computed at single indices

An epoch visits every example once in an order that is not stored, and resuming at draw ten billion
costs the same as starting.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from isoglot.types import FloatArray, LongArray

_NUM_ROUNDS = 6
_MASK = (1 << 64) - 1
_STEP = np.uint64(0x9E3779B97F4A7C15)


def key_of(*parts: int | str) -> int:
    """A 64-bit key from names and numbers; the same on every machine and Python."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def uniform(key: int, counters: LongArray) -> FloatArray:
    """One random number in [0, 1) for each counter."""
    found: FloatArray = _uniform(np.uint64(key & _MASK), counters)
    return found


def permute(n: int, key: int, indices: LongArray) -> LongArray:
    """Where the pseudo-random permutation of range(n) with this key sends each index.

    A balanced Feistel network permutes the smallest even power of two that holds n; results outside
    range(n) are permuted again until they fall inside (cycle walking: under four rounds on average,
    and still a permutation).
    """
    assert n > 0
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    images: LongArray = _permute(np.uint64(n), np.uint64(key & _MASK), np.uint64(half), indices)
    return images


@njit(cache=True, nogil=True)
def _uniform(key: np.uint64, counters: LongArray) -> FloatArray:  # pragma: no cover - compiled
    found = np.empty(len(counters))
    for place, counter in enumerate(counters):
        bits = _scramble(_scramble(np.uint64(counter) * _STEP + key) + _STEP)
        found[place] = np.float64(bits >> np.uint64(11)) * 2.0**-53
    return found


@njit(cache=True, nogil=True)
def _permute(
    n: np.uint64, key: np.uint64, half: np.uint64, indices: LongArray
) -> LongArray:  # pragma: no cover - compiled
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = np.empty(_NUM_ROUNDS, np.uint64)
    for number in range(_NUM_ROUNDS):
        keys[number] = _scramble(np.uint64(number + 1) + key)
    images = np.empty(len(indices), np.int64)
    for place, index in enumerate(indices):
        image = np.uint64(index)
        while True:
            left, right = image >> half, image & mask
            for one in keys:
                left, right = right, left ^ (_scramble(right + one) & mask)
            image = (left << half) | right
            if image < n:
                break
        images[place] = np.int64(image)
    return images


@njit(cache=True, nogil=True)
def _scramble(value: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """SplitMix64's finalizer: each output bit depends on each input bit."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
