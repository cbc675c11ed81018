"""Which sentences are held out: decided by their content, so that no source can leak into another.

The same sentence is on the same side in every source, however often it occurs; a pair is held out
if either side is, so no held-out sentence is trained on through its translation.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

Split = Literal["train", "heldout"]
SPLITS: tuple[Split, ...] = ("train", "heldout")


def split_of(texts: tuple[str, ...], *, share: float, seed: int) -> Split:
    """The side of a record of normalised texts; about `share` of all distinct ones are held out."""
    limit = int(share * 2**64)
    key = seed.to_bytes(8, "little", signed=True)
    for text in texts:
        digest = blake2b(text.encode(), digest_size=8, key=key).digest()
        if int.from_bytes(digest, "little") < limit:
            return "heldout"
    return "train"
