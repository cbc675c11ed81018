"""Characters of texts counted by class, in compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from isoglot.corpus.cleaning.characters import CHANGES, LAST_CODE, NUM_CLASSES, SPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from isoglot.types import BoolArray, LongArray


def count_characters(
    texts: Sequence[str], table: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int32], LongArray, BoolArray]:
    """For each text its characters by class, its UTF-8 bytes, and whether normalization changes it.

    A text that changes has a character that is not stable by `table`, two spaces in a row, or a
    space at one of its ends.
    """
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    counts = np.zeros((len(texts), NUM_CLASSES), np.int32)
    sizes, changes = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    _count(codes, ends, table, counts, sizes, changes)
    return counts, sizes, changes


@njit(nogil=True, cache=True)
def _count(
    codes: npt.NDArray[np.uint32],
    ends: LongArray,
    table: npt.NDArray[np.uint8],
    counts: npt.NDArray[np.int32],
    sizes: LongArray,
    changes: BoolArray,
) -> None:  # pragma: no cover - compiled
    start = 0
    for text in range(len(ends)):
        size, found, after_space = 0, 0, True
        for place in range(start, ends[text]):
            code = codes[place]
            size += 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
            kind = table[min(code, LAST_CODE)]
            counts[text, kind & (CHANGES - 1)] += 1
            is_space = kind == SPACE
            found |= kind | CHANGES * (is_space and after_space)
            after_space = is_space
        sizes[text] = size
        changes[text] = found >= CHANGES or (after_space and ends[text] > start)
        start = ends[text]
