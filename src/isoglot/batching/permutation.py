"""A seeded pseudo-random permutation of range(n), evaluated at any index in constant time.

An epoch visits every example once in an order that nobody has to store: the order is a function
of a 64-bit key, so resuming at draw ten billion costs the same as starting. A balanced Feistel
network permutes the smallest even power of two that holds n; results outside range(n) are put
through again until they fall inside (cycle walking: under four rounds on average, and still a
permutation).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from isoglot.types import LongArray

ROUNDS = 6
_MASK = (1 << 64) - 1
UintArray = npt.NDArray[np.uint64]


def key_of(*parts: int | str) -> int:
    """A 64-bit key from names and numbers; the same on every machine and Python."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def scramble(values: UintArray) -> UintArray:
    """SplitMix64's finaliser: each output bit depends on each input bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def uniform(key: int, counters: LongArray) -> npt.NDArray[np.float64]:
    """One number in [0, 1) for each counter: the n-th draw of a stream without its past."""
    step = np.uint64(0x9E3779B97F4A7C15)
    bits = scramble(scramble(counters.astype(np.uint64) * step + np.uint64(key & _MASK)) + step)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permute(n: int, key: int, indices: LongArray) -> LongArray:
    """Where the permutation of range(n) with this key sends each index."""
    assert n > 0
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    keys = scramble(np.arange(1, ROUNDS + 1, dtype=np.uint64) + np.uint64(key & _MASK))
    images = indices.astype(np.uint64)
    outside = np.arange(len(images))
    while len(outside):
        images[outside] = _feistel(images[outside], half, keys)
        outside = outside[images[outside] >= np.uint64(n)]
    return images.astype(np.int64)


def _feistel(values: UintArray, half: int, keys: UintArray) -> UintArray:
    shift, mask = np.uint64(half), np.uint64((1 << half) - 1)
    left, right = values >> shift, values & mask
    for key in keys:
        left, right = right, left ^ (scramble(right + key) & mask)
    return (left << shift) | right
