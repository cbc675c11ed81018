"""The reading side of the shards: memory-mapped tables that a loader worker can be handed.

A `Table` is one (source, language, split): its rows are numbered over all its shards, and any row
is at hand without reading the others. Everything given out is a view of the mapped file.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from isoglot.corpus.shards import DOCUMENT
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.types import IntArray, LongArray


class Shard:
    """One mapped file. Opened when first read, and again after it was sent to another process."""

    def __init__(self, path: Path, num_rows: int) -> None:
        """`num_rows` is what the manifest says."""
        self.path = path
        self.num_rows = num_rows

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return Shard, (self.path, self.num_rows)

    @override
    def __repr__(self) -> str:
        return f"Shard({str(self.path)!r}, num_rows={self.num_rows})"

    @cached_property
    def _batch(self) -> pa.RecordBatch:
        try:
            batch = pa.ipc.open_stream(pa.memory_map(str(self.path))).read_next_batch()
        except (OSError, StopIteration, pa.ArrowException) as error:
            raise CorpusError(
                f"{self.path}: cannot be read ({error}). Run isoglot prepare again."
            ) from error
        if batch.num_rows != self.num_rows:
            raise CorpusError(
                f"{self.path}: has {batch.num_rows} rows and not {self.num_rows}, as the manifest "
                "says. Run isoglot prepare again."
            )
        return batch

    @cached_property
    def _views(self) -> dict[str, tuple[IntArray, IntArray]]:
        """Column -> values and offsets, kept: making a numpy view anew costs microseconds."""
        views = {}
        for name in self._batch.schema.names:
            if name != DOCUMENT:
                column = self._batch.column(name)
                views[name] = (
                    column.values.to_numpy(zero_copy_only=True),
                    column.offsets.to_numpy(zero_copy_only=True),
                )
        return views

    def values(self, column: str) -> IntArray:
        """All token ids of a column, row after row."""
        return self._views[column][0]

    def offsets(self, column: str) -> IntArray:
        """Where each row of a column starts in `values`; one entry more than rows."""
        return self._views[column][1]

    @cached_property
    def document(self) -> IntArray:
        """The document of each row, ascending (text only)."""
        view: IntArray = self._batch.column(DOCUMENT).to_numpy(zero_copy_only=True)
        return view


class Table:
    """All rows of one (source, language, split)."""

    def __init__(self, columns: tuple[str, ...], shards: Sequence[Shard]) -> None:
        """`columns` are those that hold token ids."""
        self.columns = columns
        self.shards = tuple(shards)
        self._starts = [0]
        for shard in self.shards:
            self._starts.append(self._starts[-1] + shard.num_rows)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self.columns, self.shards)

    @property
    def num_rows(self) -> int:
        """Rows of all shards."""
        return self._starts[-1]

    @property
    def starts(self) -> LongArray:
        """The number of the first row of each shard; last, the number of rows."""
        return np.array(self._starts, dtype=np.int64)

    def lengths(self, column: str, rows: LongArray | None = None) -> IntArray:
        """The number of tokens of these rows (of all, without `rows`), in their order."""
        if rows is None:
            parts = [np.diff(shard.offsets(column)) for shard in self.shards]
            return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
        lengths = np.empty(len(rows), dtype=np.int32)
        owners = np.searchsorted(self.starts, rows, side="right") - 1
        for index in np.unique(owners):
            asked = owners == index
            local = rows[asked] - self._starts[index]
            offsets = self.shards[index].offsets(column)
            lengths[asked] = offsets[local + 1] - offsets[local]
        return lengths

    def ids(self, column: str, row: int) -> IntArray:
        """The token ids of one row: a view of the mapped file."""
        shard, local = self._locate(row)
        offsets = shard.offsets(column)
        return shard.values(column)[offsets[local] : offsets[local + 1]]

    def where(self, row: int) -> tuple[Path, int]:
        """The file a row lies in and its number there, for messages."""
        shard, local = self._locate(row)
        return shard.path, local

    def _locate(self, row: int) -> tuple[Shard, int]:
        if not 0 <= row < self.num_rows:
            raise IndexError(f"row {row} of a table with {self.num_rows} rows")
        index = bisect_right(self._starts, row) - 1
        return self.shards[index], row - self._starts[index]
