"""MinHash keys of similar lines, compiled by numba.

Similar lines share a band of their MinHash signatures (Broder, 1997; banding as in Leskovec et al.,
Mining of Massive Datasets, section 3.4): 64 hashes over the 5-character shingles of a line in 8
bands of 8. Lines that share 80 % of their shingles have a common band with a probability of 0.77,
lines that share 90 % with 0.99. One bit of each hash accompanies the band's key: from these 64 bits
the similarity of two lines is estimated.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from isoglot.corpus.deduplication.hashing import Uint64Array, scope_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from isoglot.corpus.deduplication.hashing import DuplicatesConfig, Keys
    from isoglot.corpus.reading.sources import Subset

NUM_BANDS = 8
_BAND_HASHES = 8
_SHINGLE = 5


def minhash_keys(subset: Subset, config: DuplicatesConfig) -> Keys:
    """(bands x records) keys, and the records' 64 bits, repeated for each band."""
    digest = blake2b(scope_of(subset, config).encode(), digest_size=8).digest()
    salt = np.uint64(int.from_bytes(digest, "little"))

    def keys(lines: Sequence[bytes]) -> tuple[Uint64Array, Uint64Array]:
        joined = b"\n".join(lines).decode().casefold().split("\n")
        data = np.frombuffer("".join(joined).encode("utf-32-le"), np.uint32)
        ends = np.cumsum([len(text) for text in joined])
        bands, bits = signatures(data, ends, NUM_BANDS, _BAND_HASHES, _SHINGLE, salt)
        return bands.reshape(-1), np.tile(bits, NUM_BANDS)

    return keys


@numba.njit(cache=True)
def _mixed(word: Any) -> Any:
    """A pseudorandom bijection of 64-bit words (the finalizer of splitmix64)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True)
def signatures(
    characters: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
    bands: int,
    band_hashes: int,
    shingle: int,
    salt: Any,
) -> tuple[Uint64Array, Uint64Array]:
    """The keys of each line's bands (bands, lines), and the lowest bit of each of its hashes.

    A line shorter than a shingle is one shingle.
    """
    lines = len(ends)
    keys = np.empty((bands, lines), np.uint64)
    bits = np.zeros(lines, np.uint64)
    least = np.empty(bands * band_hashes, np.uint64)
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
            for number in range(band * band_hashes, (band + 1) * band_hashes):
                key = _mixed(key ^ least[number])
                bits[line] |= (least[number] & np.uint64(1)) << np.uint64(number)
            keys[band, line] = key
        start = end
    return keys, bits
