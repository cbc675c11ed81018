"""What a contrasted thing is: a number, so that one is never told apart from itself.

Two sentences with the same tokens have the same fingerprint, on every machine and in every run; an
entity's number is its own. Numbers are never negative, which leaves one that nothing has.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isoglot.types import IntArray

NO_ITEM = -1
"""What a random entry of a queue is: the same as nothing, itself included."""


def fingerprint(ids: IntArray) -> int:
    """A sentence's number: 63 bits of a hash over its token ids."""
    digest = hashlib.blake2b(ids.astype("<i4").tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
