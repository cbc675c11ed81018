"""The keys by which equal and similar lines meet.

Equal lines have the same 128-bit hash. Similar lines share a band of their MinHash signatures
(Broder, 1997; banding as in Leskovec et al., Mining of Massive Datasets, section 3.4): 64 hashes
over the 5-character pieces of a line in 8 bands of 8, so that lines that share 80 % of their pieces
meet with a probability of 0.77, those that share 90 % with 0.99. One bit of each hash travels with
the band's key: from these 64 bits the similarity of lines that meet is estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from isoglot.corpus.cells import Cell
    from isoglot.corpus.duplicates.config import DuplicatesConfig

Words = npt.NDArray[np.uint64]
Keys = Callable[[Sequence[tuple[str, ...]]], tuple[Words, Words]]
"""Records in; two keys of each out."""

BANDS = 8
_IN_A_BAND = 8
_SHINGLE = 5


def keys_for(cell: Cell, config: DuplicatesConfig) -> Keys:
    """The exact keys of a cell's records: equal for equal texts within the scope, only for them."""
    within = cell.language if config.scope == "language" else cell.folder
    empty = blake2b(f"{cell.kind} {within}\n".encode(), digest_size=16)

    def keys(records: Sequence[tuple[str, ...]]) -> tuple[Words, Words]:
        digests = bytearray()
        for texts in records:
            state = empty.copy()
            state.update("\t".join(texts).encode())
            digests += state.digest()
        pairs = np.frombuffer(bytes(digests), "<u8").reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    return keys


def similar_keys_for(cell: Cell, config: DuplicatesConfig) -> Callable[..., tuple[Words, Words]]:
    """(bands x records) keys and the records' 64 bits, repeated for each band."""
    from isoglot.corpus.duplicates.minhash import signatures

    within = cell.language if config.scope == "language" else cell.folder
    digest = blake2b(f"{cell.kind} {within}\n".encode(), digest_size=8).digest()
    salt = np.uint64(int.from_bytes(digest, "little"))

    def keys(records: Sequence[tuple[str, ...]]) -> tuple[Words, Words]:
        joined = ["\t".join(texts).casefold() for texts in records]
        data = np.frombuffer("".join(joined).encode("utf-32-le"), np.uint32)
        ends = np.cumsum([len(text) for text in joined])
        bands, bits = signatures(data, ends, BANDS, _IN_A_BAND, _SHINGLE, salt)
        return bands.reshape(-1), np.tile(bits, BANDS)

    return keys
