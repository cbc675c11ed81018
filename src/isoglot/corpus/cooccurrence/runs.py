"""A run: the integer counts of one chunk on disk, by rows, so that runs are added row by row.

A folder with three plain files: `starts` (where each row begins), `others` (the larger ids,
ascending in a row) and `weights` (sums of shares). It appears under its name whole or not at all.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cooccurrence import kernels
from isoglot.corpus.disk import PARTIAL, writing
from isoglot.types import IntArray, LongArray

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.cooccurrence.chunks import Chunk
    from isoglot.corpus.cooccurrence.settings import PairConfig
    from isoglot.types import BoolArray

BLOCK = 4_000_000
"""The most pairs that are added up, or joined, before they are written."""


@dataclass(frozen=True, slots=True)
class Run:
    """The counts of a chunk, mapped."""

    starts: LongArray
    others: IntArray
    weights: LongArray

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Maps the files of a run."""
        rows = (folder / "starts").stat().st_size // 8
        starts = mapped(folder / "starts", np.int64, rows)
        return cls(
            starts,
            mapped(folder / "others", np.int32, int(starts[-1])),
            mapped(folder / "weights", np.int64, int(starts[-1])),
        )


def mapped(file: Path, kind: type[np.generic], number: int) -> np.ndarray:
    """A plain file as an array; writing to the array does not write to the file."""
    if number == 0:
        return np.zeros(0, kind)
    return np.memmap(file, kind, "c", shape=(number,))


def count_chunk(
    chunk: Chunk, config: PairConfig, ordinary: BoolArray, folder: Path, *, block: int = BLOCK
) -> None:
    """Counts the pairs of a chunk into a run, unless it is there already."""
    if folder.exists():
        return
    starts, packed = _sorted_pairs(chunk, config, ordinary)
    size, shares = len(ordinary), config.shares()
    lengths = [np.zeros(1, np.int64)]
    partial = folder.with_name(folder.name + PARTIAL)
    with writing(folder):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with (partial / "others").open("wb") as other, (partial / "weights").open("wb") as weight:
            for first, last in blocks(starts, block):
                most = min(int(starts[last] - starts[first]), block + size)
                others, weights = np.empty(most, np.int32), np.empty(most, np.int64)
                ends = np.empty(last - first, np.int64)
                number = kernels.add_up(
                    packed, starts, first, last, shares, size, others, weights, ends
                )
                others[:number].tofile(other)
                weights[:number].tofile(weight)
                lengths.append(np.diff(ends, prepend=0))
        np.cumsum(np.concatenate(lengths)).tofile(partial / "starts")
        partial.rename(folder)


def blocks(starts: LongArray, most: int) -> list[tuple[int, int]]:
    """Ranges of rows with at most so many pairs each; a longer row is one alone."""
    found, first, rows = [], 0, len(starts) - 1
    while first < rows:
        last = int(np.searchsorted(starts, starts[first] + most, "right")) - 1
        last = min(max(last, first + 1), rows)
        found.append((first, last))
        first = last
    return found


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
