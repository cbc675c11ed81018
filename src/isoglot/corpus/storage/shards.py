"""Shards: one record batch in an uncompressed Arrow IPC stream, memory-mapped to read.

    text    ids: list<int32>,  document: int32         one row = one sentence
    pairs   first: list<int32>,  second: list<int32>   one row = one pair of translations

One batch per file makes a column one contiguous buffer. No special tokens are stored. The files
open in datasets (which reads Arrow streams but not Arrow files), polars and duckdb.

`ShardWriter` writes the shards of one (source, language, split), `Shard` maps one file, and `Table`
numbers the rows of several shards. The knowledge store keeps its tables as shards too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import file_digest
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from typing_extensions import override

from isoglot.atomic import replace_file, write_errors
from isoglot.errors import CorpusError
from isoglot.types import IntArray

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.types import LongArray

Kind = Literal["text", "pairs"]
"""What a source holds: sentences of one language, or pairs of translations."""
Split = Literal["train", "heldout"]
SPLITS: tuple[Split, ...] = ("train", "heldout")
DOCUMENT = "document"
"""The column of text shards that numbers documents."""
PREPARE_AGAIN = "Run isoglot prepare again."


def columns_of(kind: Kind) -> tuple[str, ...]:
    """The columns that hold token ids in a source of this kind."""
    return ("first", "second") if kind == "pairs" else ("ids",)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file in a manifest: an input, or a file of the tokenizer."""

    file: str
    """Path inside the folder of the manifest, with forward slashes."""
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path, file: str) -> FileEntry:
        """The size and the hash of an existing file."""
        with path.open("rb") as stream:
            digest = file_digest(stream, "sha256").hexdigest()
        return cls(file=file, bytes=path.stat().st_size, sha256=digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardEntry(FileEntry):
    """A shard in a manifest."""

    rows: int
    tokens: dict[str, int]
    """Column -> number of tokens."""


class Shard:
    """One mapped file. Opened when first read, and again after it was sent to another process."""

    def __init__(self, path: Path, num_rows: int, remedy: str = PREPARE_AGAIN) -> None:
        """`num_rows` is the manifest's; `remedy` ends the message about a damaged file."""
        self.path, self.num_rows, self.remedy = path, num_rows, remedy

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return Shard, (self.path, self.num_rows, self.remedy)

    @override
    def __repr__(self) -> str:
        return f"Shard({str(self.path)!r}, num_rows={self.num_rows})"

    def __len__(self) -> int:
        return self.num_rows

    def values(self, column: str) -> npt.NDArray[Any]:
        """All numbers of a column; of a column of tokens all tokens, row after row."""
        return self._views[column][0]

    __getitem__ = values

    def offsets(self, column: str) -> npt.NDArray[Any]:
        """Where each row of a column of tokens starts in `values`; one entry more than rows."""
        offsets = self._views[column][1]
        assert offsets is not None, f"{column} holds no tokens"
        return offsets

    def tokens(self, column: str, row: int) -> IntArray:
        """The tokens of one row."""
        offsets = self.offsets(column)
        return self.values(column)[offsets[row] : offsets[row + 1]]

    def string(self, column: str, row: int) -> str:
        """One row of a column of strings."""
        return str(self._batch.column(column)[row])

    def strings(self, column: str) -> list[str]:
        """All rows of a column of strings, read into memory."""
        found: list[str] = self._batch.column(column).to_pylist()
        return found

    @cached_property
    def _batch(self) -> pa.RecordBatch:
        try:
            batch = pa.ipc.open_stream(pa.memory_map(str(self.path))).read_next_batch()
        except (OSError, StopIteration, pa.ArrowException) as error:
            raise CorpusError(f"{self.path}: cannot be read ({error}). {self.remedy}") from error
        if batch.num_rows != self.num_rows:
            raise CorpusError(
                f"{self.path}: has {batch.num_rows} rows and not {self.num_rows}, as the manifest "
                f"says. {self.remedy}"
            )
        return batch

    @cached_property
    def _views(self) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any] | None]]:
        """Column -> values and offsets, cached: making a numpy view takes microseconds."""
        views: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any] | None]] = {}
        for field in self._batch.schema:
            column = self._batch.column(field.name)
            if pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
                views[field.name] = (
                    column.values.to_numpy(zero_copy_only=True),
                    column.offsets.to_numpy(zero_copy_only=True),
                )
            elif pa.types.is_primitive(field.type):
                views[field.name] = (column.to_numpy(zero_copy_only=True), None)
        return views


class Table:
    """All rows of one (source, language, split), numbered over its shards; gives views of files."""

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
        """The number of tokens of these rows (default: all), in their order."""
        if rows is None:
            parts = [np.diff(shard.offsets(column)) for shard in self.shards]
            return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
        lengths = np.empty(len(rows), dtype=np.int32)
        owners = np.searchsorted(self.starts, rows, side="right") - 1
        for index in np.unique(owners):
            in_shard = owners == index
            local = rows[in_shard] - self._starts[index]
            offsets = self.shards[index].offsets(column)
            lengths[in_shard] = offsets[local + 1] - offsets[local]
        return lengths

    def ids(self, column: str, row: int) -> IntArray:
        """The token ids of one row: a view of the mapped file."""
        shard, local = self._locate(row)
        return shard.tokens(column, local)

    def where(self, row: int) -> tuple[Path, int]:
        """The file of a row and its number in that file, for messages."""
        shard, local = self._locate(row)
        return shard.path, local

    def _locate(self, row: int) -> tuple[Shard, int]:
        if not 0 <= row < self.num_rows:
            raise IndexError(f"row {row} of a table with {self.num_rows} rows")
        index = bisect_right(self._starts, row) - 1
        return self.shards[index], row - self._starts[index]


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Rows to be written: for each column all its tokens, and how many of them each row has."""

    tokens: Mapping[str, IntArray]
    lengths: Mapping[str, IntArray]
    document: IntArray | None = None
    """The document of each row, for text."""

    @property
    def num_rows(self) -> int:
        """Rows, the same in every column."""
        return len(next(iter(self.lengths.values())))

    def split(self, row: int) -> tuple[TokenRows, TokenRows]:
        """The rows before this one, and the others."""
        cuts = {name: int(lengths[:row].sum()) for name, lengths in self.lengths.items()}
        tokens = {name: np.split(ids, [cuts[name]]) for name, ids in self.tokens.items()}
        lengths = {name: np.split(numbers, [row]) for name, numbers in self.lengths.items()}
        first, rest = (
            TokenRows(
                {name: parts[half] for name, parts in tokens.items()},
                {name: parts[half] for name, parts in lengths.items()},
                None if self.document is None else np.split(self.document, [row])[half],
            )
            for half in (0, 1)
        )
        return first, rest


class ShardWriter:
    """Collects the rows of one (source, language, split) and writes a shard whenever it is full."""

    def __init__(
        self, folder: Path, prefix: str, metadata: Mapping[str, str], *, shard_tokens: int
    ) -> None:
        """Shards are named `<prefix>-00000.arrow`, relative to the folder."""
        self._folder = folder
        self._prefix = prefix
        self._metadata = dict(metadata)
        self._shard_tokens = shard_tokens
        self._pending: list[TokenRows] = []
        self._num_tokens = 0
        self.entries: list[ShardEntry] = []

    def append(self, rows: TokenRows) -> None:
        """Adds rows; the row that fills a shard is its last."""
        while rows.num_rows:
            ends = self._num_tokens + np.cumsum(sum(rows.lengths.values()))
            fitting = int(np.searchsorted(ends, self._shard_tokens)) + 1
            part, rows = rows.split(fitting)
            self._pending.append(part)
            self._num_tokens = int(ends[part.num_rows - 1])
            if self._num_tokens >= self._shard_tokens:
                self._write()

    def close(self) -> list[ShardEntry]:
        """Writes the last shard and returns the entries of all."""
        if self._num_tokens:
            self._write()
        return self.entries

    def _write(self) -> None:
        arrays: dict[str, pa.Array] = {}
        tokens: dict[str, int] = {}
        for column in self._pending[0].tokens:
            values = np.concatenate([rows.tokens[column] for rows in self._pending])
            lengths = np.concatenate([rows.lengths[column] for rows in self._pending])
            offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
            np.cumsum(lengths, out=offsets[1:])
            arrays[column] = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
            tokens[column] = len(values)
        documents = [rows.document for rows in self._pending if rows.document is not None]
        if documents:
            arrays[DOCUMENT] = pa.array(np.concatenate(documents))
        fields = [pa.field(name, array.type, nullable=False) for name, array in arrays.items()]
        schema = pa.schema(fields, metadata=self._metadata)
        batch = pa.record_batch(list(arrays.values()), schema=schema)
        file = f"{self._prefix}-{len(self.entries):05d}.arrow"
        self.entries.append(write_shard(self._folder, file, batch, tokens))
        self._pending, self._num_tokens = [], 0


def write_shard(
    folder: Path, file: str, batch: pa.RecordBatch, tokens: Mapping[str, int]
) -> ShardEntry:
    """Writes a record batch as the shard `folder/file`; `tokens` is for its entry."""
    path = folder / file
    with write_errors(path), replace_file(path) as partial:
        with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        entry = FileEntry.of(partial, file)
    return ShardEntry(**asdict(entry), rows=batch.num_rows, tokens=dict(tokens))
