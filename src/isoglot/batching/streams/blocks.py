"""Blocks of running text: consecutive sentences of a shard that fill a row.

The blocks of a shard follow each other without a gap, so the index has only where each begins: 4
bytes for a block, and 4 more for its length where separators count. It is cut from the lengths of
rows, once for each limit of tokens, and mapped by all processes.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.storage.array_file import Arrays, ArrayWriter
    from isoglot.corpus.storage.row_index import TableRows
    from isoglot.types import IntArray, LongArray

_STARTS, _NUMBER, _LENGTHS = "starts", "number", "lengths"
_MAX_THREADS = 8
_MANY_ROWS = 2**20
"""From so many rows on, shards are cut in threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSettings:
    """What decides where blocks begin and end."""

    unit: Literal["full-sentences", "tokens"]
    limit: int
    """Most tokens of a block, separators included."""
    separators: bool
    across_documents: bool


class Blocks:
    """The blocks of a table, numbered over its shards."""

    def __init__(self, arrays: Arrays) -> None:
        """`arrays` are those of `cut_blocks`."""
        self._arrays = arrays
        self.ends: LongArray = np.cumsum(arrays[_NUMBER], dtype=np.int64)
        """The number of blocks up to the end of each shard."""
        self.num_blocks = int(self.ends[-1]) if len(self.ends) else 0
        self.num_tokens = int(arrays.facts["num_tokens"])

    def lengths(self, numbers: LongArray) -> IntArray:
        """The tokens of blocks, separators included."""
        if _LENGTHS in self._arrays:
            lengths: IntArray = self._arrays[_LENGTHS][numbers].astype(np.int32)
            return lengths
        starts, places = self._arrays[_STARTS], numbers + self._shards(numbers)
        return np.asarray(starts[places + 1] - starts[places], np.int32)

    def span(self, number: int) -> tuple[int, int, int]:
        """The shard of a block, and its tokens [start, stop) there."""
        shard = int(self._shards(np.int64(number)))
        start, stop = self._arrays[_STARTS][number + shard : number + shard + 2].tolist()
        return shard, start, stop

    def _shards(self, numbers: LongArray | np.int64) -> LongArray:
        return np.searchsorted(self.ends, numbers, "right")


def cut_blocks(
    writer: ArrayWriter, rows: TableRows, shard_starts: LongArray, settings: BlockSettings
) -> None:
    """Write where the blocks of every shard begin; the shards' rows begin at `shard_starts`."""
    numbers = np.zeros(len(shard_starts) - 1, np.uint32)
    num_tokens = 0
    writer.append(_STARTS, np.zeros(0, np.uint32))
    for shard, found in enumerate(_cut_shards(rows, shard_starts, settings)):
        # a shard's blocks follow each other; where the last one ends comes after their starts
        ends = found.stops[-1:] if len(found.stops) else np.zeros(1, np.int64)
        writer.append(_STARTS, np.append(found.starts, ends).astype(np.uint32))
        numbers[shard] = len(found.starts)
        num_tokens += int(found.lengths.sum())
    writer.append(_NUMBER, numbers)
    writer.facts["num_tokens"] = num_tokens
    if settings.separators:
        # arrays are written one after the other: cut again, rather than keep the lengths in memory
        writer.append(_LENGTHS, np.zeros(0, np.uint32))
        for found in _cut_shards(rows, shard_starts, settings):
            writer.append(_LENGTHS, found.lengths.astype(np.uint32))


class _ShardBlocks(NamedTuple):
    starts: LongArray
    stops: LongArray
    lengths: LongArray


def _cut_shards(
    rows: TableRows, shard_starts: LongArray, settings: BlockSettings
) -> Iterator[_ShardBlocks]:
    """The blocks of each shard, some shards at a time in threads."""

    def cut(shard: int) -> _ShardBlocks:
        own = slice(*shard_starts[shard : shard + 2].tolist())
        offsets = np.zeros(own.stop - own.start + 1, np.int64)
        np.cumsum(rows.sizes(own)[:, 0], out=offsets[1:])
        if settings.across_documents:
            documents = np.zeros(len(offsets) - 1, np.int32)
        else:
            documents = np.cumsum(rows.begins_document(own), dtype=np.int32)
        whole = settings.unit == "full-sentences"
        return _ShardBlocks(
            *find_blocks(offsets, documents, settings.limit, int(settings.separators), whole)
        )

    number, threads = len(shard_starts) - 1, min(os.cpu_count() or 1, _MAX_THREADS)
    if len(rows) < _MANY_ROWS:
        yield from map(cut, range(number))
        return
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, number, 8 * threads):
            yield from pool.map(cut, range(first, min(first + 8 * threads, number)))


@njit(cache=True, nogil=True)
def find_blocks(
    offsets: LongArray,
    documents: IntArray,
    limit: int,
    separator: int,
    whole: bool,  # noqa: FBT001 (numba has no keyword-only arguments)
) -> tuple[LongArray, LongArray, LongArray]:  # pragma: no cover - compiled
    """Greedy blocks of (whole) sentences of at most `limit` tokens, separators counted."""
    capacity = len(offsets) + (offsets[-1] - offsets[0]) // max(limit, 1) + 1
    starts = np.empty(capacity, np.int64)
    stops = np.empty(capacity, np.int64)
    lengths = np.empty(capacity, np.int64)
    n, length, document = 0, 0, documents[0] if len(documents) else 0
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        size = stop - start
        if size == 0:
            continue
        same = documents[row] == document
        document = documents[row]
        room = limit - length - separator
        if length > 0 and same and room > 0 and (size <= room or not whole):
            taken = min(size, room)
            start += taken
            length += separator + taken
            stops[n - 1], lengths[n - 1] = start, length
        while start < stop:
            taken = min(limit, stop - start)
            starts[n], stops[n], lengths[n] = start, start + taken, taken
            length = taken
            start += taken
            n += 1
    return starts[:n], stops[:n], lengths[:n]
