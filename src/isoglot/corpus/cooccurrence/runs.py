"""A run: the integer counts of one chunk on disk, by rows, so that runs are added row by row.

A folder with three plain files: `starts` (where each row begins), `others` (the larger ids,
ascending in a row) and `weights` (sums of shares, of 32 or 64 bits). It appears under its name
whole or not at all.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isoglot.corpus.cooccurrence import kernels
from isoglot.corpus.cooccurrence.chunks import Chunk
from isoglot.corpus.cooccurrence.settings import PairConfig
from isoglot.corpus.disk import PARTIAL, writing
from isoglot.types import BoolArray, LongArray

BLOCK = 400_000
"""The most pairs that are added up, or joined, before they are written: arrays so small are taken
from memory that the process has already, which is half the time that the system spends on it."""
_NARROW = 2**32
"""Sums below this are kept in 32 bits."""


@dataclass(frozen=True, slots=True)
class Run:
    """The counts of a chunk; where its rows begin is mapped, the rest is read when asked for."""

    folder: Path
    starts: LongArray
    wide: bool
    """Do weights have 64 bits?"""

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Opens the files of a run."""
        rows = (folder / "starts").stat().st_size // 8
        starts = mapped(folder / "starts", np.dtype(np.int64), rows)
        return cls(folder, starts, (folder / "weights").stat().st_size > 4 * int(starts[-1]))

    def read(self, first: int, last: int, others: Any, weights: Any) -> None:
        """Fill two arrays with the rows [first, last)."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        # read and not mapped: pages of a map would add up to the whole file in memory
        others[:] = _read(self.folder / "others", np.dtype(np.int32), begin, end)
        kind = np.dtype(np.int64 if self.wide else np.uint32)
        weights[:] = _read(self.folder / "weights", kind, begin, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTask:
    """A chunk to be counted, by whichever process."""

    chunk: Chunk
    config: PairConfig
    ordinary: BoolArray
    """For each id: is it counted?"""
    folder: Path
    """Where the run is kept."""
    block: int = BLOCK
    """The most pairs that are added up before they are written."""


def count_chunk(task: CountTask) -> int:
    """Counts the pairs of a chunk into a run, unless it is there already; gives its tokens."""
    if task.folder.exists():
        return task.chunk.num_tokens
    starts, packed = _sorted_pairs(task.chunk, task.config, task.ordinary)
    size, shares = len(task.ordinary), task.config.shares()
    # a token beside itself counts twice
    largest = 2 * int(shares.max()) * len(packed)
    kind = np.dtype(np.uint32 if largest < _NARROW else np.int64)
    lengths = [np.zeros(1, np.int64)]
    partial = task.folder.with_name(task.folder.name + PARTIAL)
    with writing(task.folder):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with (partial / "others").open("wb") as other, (partial / "weights").open("wb") as weight:
            for first, last in blocks(starts, task.block):
                most = min(int(starts[last] - starts[first]), task.block + size)
                others, weights = np.empty(most, np.int32), np.empty(most, kind)
                ends = np.empty(last - first, np.int64)
                number = kernels.add_up(
                    packed, starts, first, last, shares, size, others, weights, ends
                )
                others[:number].tofile(other)
                weights[:number].tofile(weight)
                lengths.append(np.diff(ends, prepend=0))
        np.cumsum(np.concatenate(lengths)).tofile(partial / "starts")
        partial.rename(task.folder)
    return task.chunk.num_tokens


def blocks(starts: LongArray, most: int) -> list[tuple[int, int]]:
    """Ranges of rows with at most so many pairs each; a longer row is one alone."""
    found, first, rows = [], 0, len(starts) - 1
    while first < rows:
        last = int(np.searchsorted(starts, starts[first] + most, "right")) - 1
        last = min(max(last, first + 1), rows)
        found.append((first, last))
        first = last
    return found


def mapped(file: Path, kind: np.dtype[Any], number: int) -> Any:
    """A plain file as an array; writing to the array does not write to the file."""
    if number == 0:
        return np.zeros(0, kind)
    return np.memmap(file, kind, "c", shape=(number,))


def _read(file: Path, kind: np.dtype[Any], begin: int, end: int) -> Any:
    return np.fromfile(file, kind, end - begin, offset=begin * kind.itemsize)


def _sorted_pairs(
    chunk: Chunk, config: PairConfig, ordinary: BoolArray
) -> tuple[LongArray, kernels.Packed]:
    """Where the pairs of each smaller id begin, and all pairs in that order."""
    starts = np.zeros(len(ordinary) + 1, np.int64)
    texts = [
        (
            piece.shard.values(piece.column),
            piece.shard.offsets(piece.column),
            piece.first,
            piece.last,
        )
        for piece in chunk.pieces
    ]
    for text in texts:
        kernels.tally(*text, ordinary, config.window, starts[1:])
    np.cumsum(starts, out=starts)
    packed = np.empty(starts[-1], np.uint32)
    places = starts[:-1].copy()
    for text in texts:
        kernels.scatter(*text, ordinary, config.window, places, packed)
    return starts, packed
