"""Hashes on their way to disk: sorted by partition in runs, so that memory stays flat.

A unit writes one file of entries (two 64-bit keys and a place) and, beside it, where each partition
lies in each run. An entry belongs to the partition that its first key names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isoglot.corpus.disk import writing
from isoglot.corpus.heldout import SPLITS, Split

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from isoglot.types import LongArray

Words = npt.NDArray[np.uint64]

ENTRY = np.dtype([("first", "<u8"), ("second", "<u8"), ("place", "<i8")])
"""Two keys, and the row of the unit they were made of (`place_of`)."""
RUN = 1 << 18
"""Entries of a run: 6 MiB."""
_SPLIT_BITS = 40


def place_of(split: Split, row: int) -> int:
    """A row of one split of a unit as one number; all rows of a split lie together."""
    return SPLITS.index(split) << _SPLIT_BITS | row


def rows_of(places: LongArray, split: Split) -> LongArray:
    """The rows of one split among (sorted) places."""
    start = SPLITS.index(split) << _SPLIT_BITS
    lower, upper = np.searchsorted(places, [start, start + (1 << _SPLIT_BITS)])
    return places[lower:upper] - start


PLACE_BITS = _SPLIT_BITS + 1
"""Bits of a place; the number of the unit goes above them."""


class HashRuns:
    """Writes the entries of one unit, in a `with` block."""

    def __init__(self, path: Path, partitions: int) -> None:
        """`path` is the file of entries; its index gets the suffix .npy."""
        self._path = path
        self._partitions = partitions
        self._blocks: list[npt.NDArray[np.void]] = []
        self._held = 0
        self._ends: list[LongArray] = []
        self._written = 0
        with writing(path):
            self._file = path.open("wb")

    def append(self, first: Words, second: Words, places: LongArray) -> None:
        """Adds entries."""
        block = np.empty(len(first), ENTRY)
        block["first"], block["second"], block["place"] = first, second, places
        self._blocks.append(block)
        self._held += len(block)
        if self._held >= RUN:
            self._flush()

    def __enter__(self) -> HashRuns:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Writes what is left, and the index, unless the work has failed."""
        if kind is not None:
            self._file.close()
            return
        if self._held:
            self._flush()
        with writing(self._path):
            self._file.close()
            index = np.array(self._ends, np.int64).reshape(-1, self._partitions + 1)
            np.save(_index(self._path), index)

    def _flush(self) -> None:
        entries = np.concatenate(self._blocks)
        owners = (entries["first"] % np.uint64(self._partitions)).astype(np.int64)
        entries = entries[np.argsort(owners, kind="stable")]
        ends = np.zeros(self._partitions + 1, np.int64)
        np.cumsum(np.bincount(owners, minlength=self._partitions), out=ends[1:])
        self._ends.append(ends + self._written)
        self._written += len(entries)
        with writing(self._path):
            self._file.write(entries.tobytes())
        self._blocks, self._held = [], 0


def read_partition(path: Path, partition: int) -> npt.NDArray[np.void]:
    """The entries of one partition of one unit."""
    index = np.load(_index(path))
    with path.open("rb") as file:
        parts = []
        for lower, upper in index[:, partition : partition + 2].tolist():
            file.seek(lower * ENTRY.itemsize)
            parts.append(np.fromfile(file, ENTRY, upper - lower))
    return np.concatenate([np.empty(0, ENTRY), *parts])


def _index(path: Path) -> Path:
    return path.with_name(path.name + ".npy")
