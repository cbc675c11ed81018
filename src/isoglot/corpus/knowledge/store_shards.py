"""Writes one shard of a knowledge store, of any size, in bounded memory.

The columns are spooled to temporary files while rows come in; the one record batch of the shard is
built over their mappings. Offsets have 64 bits. Rows are checked: their order, their lengths.
"""

from __future__ import annotations

import mmap
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isoglot.atomic import write_errors
from isoglot.corpus.storage.shard_writer import write_shard
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.storage.shards import ShardEntry
    from isoglot.types import LongArray

INT16, INT32, INT64, STRING = pa.int16(), pa.int32(), pa.int64(), pa.large_string()
TOKENS = pa.large_list(pa.int32())

Rows: TypeAlias = pa.RecordBatch | pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """The columns of a table and what is checked of its rows."""

    columns: dict[str, pa.DataType]
    """Name -> one of the types above."""
    order: tuple[str, ...] = ()
    """Columns by which rows must ascend."""
    repeats: bool = False
    """Whether rows may be equal in these columns."""
    max_tokens: int | None = None
    """Rows must have from 1 to so many `tokens`."""


class SpooledShard:
    """Collects the rows of one shard on disk and writes it, in a `with` block."""

    def __init__(self, folder: Path, file: str, schema: TableSchema) -> None:
        self.columns, self.rows = schema.columns, 0
        self._folder, self._file, self._path = folder, file, folder / file
        self._schema = schema
        self._last: list[int] | None = None
        self._num_tokens = {name: 0 for name, kind in self.columns.items() if kind == TOKENS}
        self._open = ExitStack()
        self._values: dict[str, IO[bytes]] = {}
        self._offsets: dict[str, IO[bytes]] = {}

    def __enter__(self) -> Self:
        with write_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            for name, kind in self.columns.items():
                self._values[name] = self._spool()
                if kind in (TOKENS, STRING):
                    self._offsets[name] = self._spool()
                    self._offsets[name].write(bytes(8))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _spool(self) -> IO[bytes]:
        return self._open.enter_context(TemporaryFile(dir=self._path.parent))

    def append(self, rows: Rows) -> None:
        """Adds rows; columns in any order, of types that cast without loss."""
        if not rows.num_rows:
            return
        self._check_order(rows)
        max_tokens = self._schema.max_tokens
        if max_tokens is not None:
            lengths = np.asarray(pc.list_value_length(rows.column("tokens")))
            if lengths.min() < 1 or lengths.max() > max_tokens:
                raise CorpusError(f"{self._path}: a description has from 1 to {max_tokens} tokens.")
        with write_errors(self._path):
            for name, kind in self.columns.items():
                column = rows.column(name).cast(kind)
                chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
                for chunk in chunks:
                    if len(chunk):
                        self._append(name, chunk)
        self.rows += rows.num_rows

    def write(self) -> ShardEntry:
        """Writes the shard."""
        with write_errors(self._path):
            fields = [pa.field(name, kind, nullable=False) for name, kind in self.columns.items()]
            arrays = [self._array(name) for name in self.columns]
            batch = pa.record_batch(arrays, schema=pa.schema(fields))
            return write_shard(self._folder, self._file, batch, self._num_tokens)

    def _check_order(self, rows: Rows) -> None:
        """Raises unless rows ascend, also after the rows before them."""
        order = self._schema.order
        if not order:
            return
        keys = [np.asarray(rows.column(name), np.int64) for name in order]
        last = self._last
        if last is not None:
            keys = [np.concatenate([[value], key]) for value, key in zip(last, keys, strict=True)]
        ascending = np.full(len(keys[0]) - 1, self._schema.repeats)
        for key in reversed(keys):
            step = np.diff(key)
            ascending = (step > 0) | ((step == 0) & ascending)
        if not ascending.all():
            place = int((~ascending).argmax())
            raise CorpusError(
                f"{self._path}: rows are not sorted by {', '.join(order)}, or one is there "
                f"twice: {[int(key[place]) for key in keys]} comes before "
                f"{[int(key[place + 1]) for key in keys]}."
            )
        self._last = [int(key[-1]) for key in keys]

    def _append(self, name: str, chunk: pa.Array) -> None:
        values, kind = self._values[name], self.columns[name]
        if chunk.null_count:
            raise CorpusError(f"{self._path}: column {name!r} must not have missing values.")
        if kind not in (TOKENS, STRING):
            values.write(chunk.to_numpy(zero_copy_only=False))
            return
        ends = _offsets(chunk)
        if kind == TOKENS:
            written = chunk.flatten().to_numpy(zero_copy_only=False)
            self._num_tokens[name] += len(written)
            width = written.itemsize
        else:
            content = chunk.buffers()[2]
            written = memoryview(content or b"")[ends[0] : ends[-1]]
            width = 1
        before = values.tell() // width
        values.write(written)
        self._offsets[name].write(ends[1:] - ends[0] + before)

    def _array(self, name: str) -> pa.Array:
        kind = self.columns[name]
        values = _mapped(self._values[name])
        if kind not in (TOKENS, STRING):
            return pa.Array.from_buffers(kind, self.rows, [None, values])
        offsets = _mapped(self._offsets[name])
        if kind == STRING:
            return pa.Array.from_buffers(kind, self.rows, [None, offsets, values])
        tokens = pa.Array.from_buffers(INT32, self._num_tokens[name], [None, values])
        return pa.Array.from_buffers(kind, self.rows, [None, offsets], children=[tokens])


def _mapped(file: IO[bytes]) -> pa.Buffer:
    file.flush()
    if not file.tell():
        return pa.py_buffer(b"")
    return pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _offsets(chunk: pa.Array) -> LongArray:
    """The offsets of a chunk's rows in its values; a slice shares the buffer of its array."""
    offsets = np.frombuffer(chunk.buffers()[1], np.int64)
    return offsets[chunk.offset : chunk.offset + len(chunk) + 1]
