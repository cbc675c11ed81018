"""Tables of the knowledge store: Arrow files of one record batch, mapped and addressed by row.

One batch a file makes every column one contiguous numpy view, so that a stream looks up thousands
of rows at once with plain indexing. A table may be larger than memory: its columns are spooled to
raw files while it is written, and the batch is built over their mappings. Offsets are 64-bit.

    TableWriter.append(batches) ... close() -> TableEntry      Mapped(path, rows)["entity"]
"""

from __future__ import annotations

import mmap
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from typing_extensions import override

from isoglot.corpus.disk import PARTIAL, writing
from isoglot.corpus.manifest import file_entry
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.types import IntArray, LongArray

INT16, INT32, INT64, STRING = pa.int16(), pa.int32(), pa.int64(), pa.large_string()
TOKENS = pa.large_list(pa.int32())
AGAIN = "Run isoglot knowledge link again."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """What knowledge.json knows of one file."""

    file: str
    """Path inside the knowledge folder, with forward slashes."""
    rows: int
    values: int
    """Tokens of all rows, 0 for a table without."""
    bytes: int
    sha256: str


class TableWriter:
    """Writes one table, batch after batch, in memory that does not grow with it."""

    def __init__(self, folder: Path, file: str, columns: Mapping[str, pa.DataType]) -> None:
        """`file` is the path inside the folder; the columns' types are those above."""
        self.file, self.columns = file, dict(columns)
        self.rows, self.values = 0, 0
        self._folder, self._path = folder, folder / file
        self._open = ExitStack()
        with writing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._spools = {
                name: (self._spool(name, "values"), self._spool(name, "offsets"))
                for name in self.columns
            }

    def append(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Adds rows; columns in any order, of types that hold the table's values without loss."""
        with writing(self._path):
            for name, kind in self.columns.items():
                for chunk in _chunks(batch.column(name).cast(kind)):
                    self._append(name, chunk)
        self.rows += batch.num_rows

    def close(self) -> TableEntry:
        """Writes the file under its name."""
        partial = self._path.with_name(self._path.name + PARTIAL)
        with writing(self._path):
            fields = [pa.field(n, kind, nullable=False) for n, kind in self.columns.items()]
            batch = pa.record_batch(
                [self._array(name) for name in self.columns], schema=pa.schema(fields)
            )
            with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as file:
                file.write_batch(batch)
            del batch
            self.abandon()
            partial.replace(self._path)
        entry = file_entry(self._path, self.file)
        return TableEntry(
            file=self.file,
            rows=self.rows,
            values=self.values,
            bytes=entry.bytes,
            sha256=entry.sha256,
        )

    def abandon(self) -> None:
        """Leaves nothing of an unfinished table behind."""
        self._open.close()
        for name in self.columns:
            for part in ("values", "offsets"):
                self._spool_path(name, part).unlink(missing_ok=True)

    def _append(self, name: str, chunk: pa.Array) -> None:
        values, offsets = self._spools[name]
        kind = self.columns[name]
        if chunk.null_count:
            raise CorpusError(f"{self._path}: column {name!r} must not have missing values.")
        if kind not in (TOKENS, STRING):
            values.write(chunk.to_numpy(zero_copy_only=False))
            return
        ends = _offsets(chunk)
        if kind == TOKENS:
            written = chunk.flatten().to_numpy(zero_copy_only=False)
            self.values += len(written)
            width = written.itemsize
        else:
            content = chunk.buffers()[2]
            written = memoryview(content or b"")[ends[0] : ends[-1]]
            width = 1
        before = values.tell() // width
        values.write(written)
        offsets.write(ends[1:] - ends[0] + before)

    def _array(self, name: str) -> pa.Array:
        kind = self.columns[name]
        if kind not in (TOKENS, STRING):
            return pa.Array.from_buffers(kind, self.rows, [None, self._mapped(name, "values")])
        offsets = self._mapped(name, "offsets")
        if kind == STRING:
            buffers = [None, offsets, self._mapped(name, "values")]
            return pa.Array.from_buffers(kind, self.rows, buffers)
        tokens = pa.Array.from_buffers(INT32, self.values, [None, self._mapped(name, "values")])
        return pa.Array.from_buffers(kind, self.rows, [None, offsets], children=[tokens])

    def _spool_path(self, name: str, part: str) -> Path:
        return self._path.with_name(f".{self._path.name}.{name}.{part}{PARTIAL}")

    def _spool(self, name: str, part: str) -> BinaryIO:
        file = self._open.enter_context(self._spool_path(name, part).open("w+b"))
        if part == "offsets":
            file.write(bytes(8))
        return file

    def _mapped(self, name: str, part: str) -> pa.Buffer:
        file = self._spools[name][part == "offsets"]
        file.flush()
        if not file.tell():
            return pa.py_buffer(b"")
        return pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class Mapped:
    """One table, mapped. Opened when first read, and again after it was sent to a process."""

    def __init__(self, path: Path, rows: int) -> None:
        """`rows` is what knowledge.json says."""
        self.path, self.rows = path, rows

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return Mapped, (self.path, self.rows)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        """All values of a column of numbers; all tokens of one of tokens."""
        return self._views[column][0]

    def offsets(self, column: str) -> LongArray:
        """Where each row of a column of tokens starts; one entry more than rows."""
        offsets = self._views[column][1]
        assert offsets is not None
        return offsets

    def tokens(self, column: str, row: int) -> IntArray:
        """The tokens of one row."""
        values, offsets = self._views[column]
        assert offsets is not None
        return values[offsets[row] : offsets[row + 1]]

    def string(self, column: str, row: int) -> str:
        """One row of a column of strings."""
        return str(self._batch.column(column)[row])

    def strings(self, column: str) -> list[str]:
        """All of a column of strings, read into memory."""
        found: list[str] = self._batch.column(column).to_pylist()
        return found

    @cached_property
    def _batch(self) -> pa.RecordBatch:
        try:
            batch = pa.ipc.open_file(pa.memory_map(str(self.path))).get_batch(0)
        except (OSError, pa.ArrowException) as error:
            raise CorpusError(f"{self.path}: cannot be read ({error}). {AGAIN}") from error
        if batch.num_rows != self.rows:
            raise CorpusError(
                f"{self.path}: has {batch.num_rows} rows and not {self.rows}, as knowledge.json "
                f"says. {AGAIN}"
            )
        return batch

    @cached_property
    def _views(self) -> dict[str, tuple[npt.NDArray[Any], LongArray | None]]:
        views: dict[str, tuple[npt.NDArray[Any], LongArray | None]] = {}
        for field in self._batch.schema:
            column = self._batch.column(field.name)
            if field.type == TOKENS:
                views[field.name] = (
                    column.values.to_numpy(zero_copy_only=True),
                    column.offsets.to_numpy(zero_copy_only=True),
                )
            elif field.type != STRING:
                views[field.name] = (column.to_numpy(zero_copy_only=True), None)
        return views


def between(ascending: IntArray, low: int, high: int) -> tuple[int, int]:
    """The rows of a sorted column with values of [low, high)."""
    # keys of another type would make numpy copy all of the column
    first, last = np.searchsorted(ascending, np.array([low, high], ascending.dtype))
    return int(first), int(last)


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [chunk for chunk in chunks if len(chunk)]


def _offsets(chunk: pa.Array) -> LongArray:
    """Where the rows of a chunk start in its values; a slice of an array keeps all of its own."""
    offsets = np.frombuffer(chunk.buffers()[1], np.int64)
    return offsets[chunk.offset : chunk.offset + len(chunk) + 1]
