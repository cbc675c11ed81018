"""Shards: one record batch in an uncompressed Arrow IPC stream, memory-mapped to read.

    text    ids: list<int32>,  document: int32         one row = one sentence
    pairs   first: list<int32>,  second: list<int32>   one row = one pair of translations

One batch per file makes a column one contiguous buffer. No special tokens are stored. The files
open in datasets (which reads Arrow streams but not Arrow files), polars and duckdb.

`Shard` maps one file, and `Table` numbers the rows of several shards; `ShardWriter` of
`shard_writer.py` writes them. The knowledge store keeps its tables as shards too.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import file_digest
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
import pyarrow as pa
from typing_extensions import override

from isoglot.corpus.storage.grouping import group_places
from isoglot.errors import CorpusError
from isoglot.remote.corpora import fetch_missing, note_opened
from isoglot.remote.paths import RemotePath

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.types import IntArray, LongArray

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
        """The size and the hash of an existing file (of a remote one, `RemotePath.sha256`)."""
        if isinstance(path, RemotePath):
            return cls(file=file, bytes=path.stat().st_size, sha256=path.sha256())
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
    """One mapped file. Opened when first read, and again after it was sent to another process.

    A process keeps at most `MAX_OPEN` files mapped: the one that was opened first is closed, and
    opened again when it is read again. Arrays that were given out stay valid.
    """

    def __init__(self, path: Path, num_rows: int, remedy: str = PREPARE_AGAIN) -> None:
        """`num_rows` is the manifest's; `remedy` ends the message about a damaged file."""
        self.path, self.num_rows, self.remedy = path, num_rows, remedy
        self._mapped: _MappedColumns | None = None

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
        return self._opened().views[column][0]

    __getitem__ = values

    def offsets(self, column: str) -> npt.NDArray[Any]:
        """Where each row of a column of tokens starts in `values`; one entry more than rows."""
        offsets = self._opened().views[column][1]
        assert offsets is not None, f"{column} holds no tokens"
        return offsets

    def tokens(self, column: str, row: int) -> IntArray:
        """The tokens of one row."""
        offsets = self.offsets(column)
        return self.values(column)[offsets[row] : offsets[row + 1]]

    def string(self, column: str, row: int) -> str:
        """One row of a column of strings."""
        return str(self._opened().batch.column(column)[row])

    def strings(self, column: str) -> list[str]:
        """All rows of a column of strings, read into memory."""
        found: list[str] = self._opened().batch.column(column).to_pylist()
        return found

    def close(self) -> None:
        """Give the mapping up; arrays that were given out keep it until they are gone."""
        self._mapped = None

    def _opened(self) -> _MappedColumns:
        mapped = self._mapped  # another thread may close it
        if mapped is None:
            mapped = self._mapped = _map_file(self.path, self.num_rows, self.remedy)
            _close_oldest(self)
        return mapped


class _MappedColumns(NamedTuple):
    """A mapped record batch."""

    batch: pa.RecordBatch
    views: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any] | None]]
    """Column -> values and offsets, kept: making a numpy view takes microseconds."""


def _map_file(path: Path, num_rows: int, remedy: str) -> _MappedColumns:
    try:
        batch = _read_batch(path)
    except (OSError, StopIteration, pa.ArrowException) as error:
        raise CorpusError(f"{path}: cannot be read ({error}). {remedy}") from error
    if batch.num_rows != num_rows:
        raise CorpusError(
            f"{path}: has {batch.num_rows} rows and not {num_rows}, as the manifest says. {remedy}"
        )
    views: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any] | None]] = {}
    for field in batch.schema:
        column = batch.column(field.name)
        if pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            views[field.name] = (
                column.values.to_numpy(zero_copy_only=True),
                column.offsets.to_numpy(zero_copy_only=True),
            )
        elif pa.types.is_primitive(field.type):
            views[field.name] = (column.to_numpy(zero_copy_only=True), None)
    return _MappedColumns(batch, views)


def _read_batch(path: Path) -> pa.RecordBatch:
    """The record batch of a mapped file; a missing one of a remote corpus is fetched."""
    note_opened(path)
    for _ in range(_MAX_FETCHES):
        try:
            return pa.ipc.open_stream(pa.memory_map(str(path))).read_next_batch()
        except FileNotFoundError:  # or another process made room for its own
            if not fetch_missing(path):
                raise
            _close_removed()
    raise CorpusError(
        f"{path}: is removed before it is read, again and again: the cache of remote files is too "
        "small for the shards that are read at a time. Raise ISOGLOT_CACHE_GB."
    )


_MAX_FETCHES = 20
MAX_OPEN = 16_384
"""Shards that a process keeps mapped: a quarter of the mappings that Linux allows by default."""
_open_shards: deque[weakref.ref[Shard]] = deque()


def _close_oldest(opened: Shard) -> None:
    """Close the shards that were opened first, until no more than `MAX_OPEN` are mapped."""
    _open_shards.append(weakref.ref(opened))
    while len(_open_shards) > MAX_OPEN:
        oldest = _open_shards.popleft()()
        if oldest is not None:
            oldest.close()


def _close_removed() -> None:
    """Close shards whose files the cache of remote files has removed: they still take disk."""
    for reference in _open_shards.copy():  # other threads open shards meanwhile
        shard = reference()
        if shard is not None and not shard.path.exists():
            shard.close()


class ShardFiles(Sequence[Shard]):
    """The shards of a table by their number; each is made when first asked for."""

    def __init__(self, folder: Path, files: Sequence[str], num_rows: Sequence[int]) -> None:
        """`files` are paths inside the folder, `num_rows` the rows of each."""
        self.folder, self.files, self.num_rows = folder, files, num_rows
        self._made: dict[int, Shard] = {}

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return ShardFiles, (self.folder, self.files, self.num_rows)

    @override
    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, number: int) -> Shard: ...
    @overload
    def __getitem__(self, number: slice) -> list[Shard]: ...
    @override
    def __getitem__(self, number: int | slice) -> Shard | list[Shard]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        shard = self._made.get(number)
        if shard is None:
            shard = Shard(self.folder / self.files[number], self.num_rows[number])
            self._made[number] = shard
        return shard


class Table:
    """All rows of one (source, language, split), numbered over its shards; gives views of files."""

    def __init__(self, columns: tuple[str, ...], shards: Sequence[Shard]) -> None:
        """`columns` are those that hold token ids."""
        self.columns = columns
        self.shards = shards
        sizes = shards.num_rows if isinstance(shards, ShardFiles) else list(map(len, shards))
        self._starts = [0, *accumulate(sizes)]

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
        for index, chosen in group_places(owners):
            local = rows[chosen] - self._starts[index]
            offsets = self.shards[index].offsets(column)
            lengths[chosen] = offsets[local + 1] - offsets[local]
        return lengths

    def ids(self, column: str, row: int) -> IntArray:
        """The token ids of one row: a view of the mapped file."""
        number, local = self.locate(row)
        return self.shards[number].tokens(column, local)

    def where(self, row: int) -> tuple[Path, int]:
        """The file of a row and its number in that file, for messages."""
        number, local = self.locate(row)
        return self.shards[number].path, local

    def locate(self, row: int) -> tuple[int, int]:
        """The shard of a row, and the row's number there."""
        if not 0 <= row < self.num_rows:
            raise IndexError(f"row {row} of a table with {self.num_rows} rows")
        index = bisect_right(self._starts, row) - 1
        return index, row - self._starts[index]
