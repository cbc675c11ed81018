"""The lengths of all rows of a table in one mapped file, so that planning opens no shards.

`prepare` writes `.index/SOURCE/LANGUAGE/SPLIT-rows.safetensors` for every table; of a corpus
without them they are made when it is first read. An array `rows` has 2 bytes for each row (4 where
one is longer than that), or for each side of a pair:

    text    2 × tokens, + 1 where a document begins
    pairs   tokens of the first side, tokens of the second
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.corpus.storage.derived import INDEX, build_file, key_of_index, open_index
from isoglot.corpus.storage.shards import DOCUMENT, FileEntry, Shard, Split, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from isoglot.corpus.storage.array_file import Arrays, ArrayWriter
    from isoglot.types import BoolArray, IntArray, LongArray

_ROWS = "rows"
_CHUNK = 2**20
"""Rows that are looked at together."""


class TableRows:
    """The number of tokens of each row of a table, and where documents begin."""

    def __init__(self, arrays: Arrays, *, has_documents: bool) -> None:
        self._arrays, self._has_documents = arrays, has_documents

    def __len__(self) -> int:
        return len(self._arrays[_ROWS])

    def sizes(self, rows: LongArray | slice) -> IntArray:
        """(n, columns): the tokens of rows."""
        found = self._arrays[_ROWS][rows].astype(np.int32)
        return found >> 1 if self._has_documents else found

    def begins_document(self, rows: slice) -> BoolArray:
        """(n,): does a document begin with this row of a text? Not told of rows without tokens."""
        assert self._has_documents
        begins: BoolArray = self._arrays[_ROWS][rows, 0] & 1 > 0
        return begins

    def chunks(self) -> Iterator[slice]:
        """All rows, some at a time, to bound memory."""
        for start in range(0, len(self), _CHUNK):
            yield slice(start, min(start + _CHUNK, len(self)))


def file_of_rows(source: str, language: str, split: Split) -> str:
    """The path of a table's index inside the corpus."""
    return f"{INDEX}/{source}/{language}/{split}-rows.safetensors"


def key_of_rows(fingerprint: str, source: str, language: str, split: Split) -> str:
    """What the rows of a table are made from."""
    return key_of_index(fingerprint, source, language, split, "rows")


def open_rows(
    corpus: Path, fingerprint: str, table: Table, source: str, language: str, split: Split
) -> TableRows:
    """The rows of a table, mapped; of a small one, read from its shards."""

    def build(writer: ArrayWriter) -> None:
        write_rows(writer, table)

    key = key_of_rows(fingerprint, source, language, split)
    name = file_of_rows(source, language, split).removeprefix(f"{INDEX}/")
    arrays = open_index(corpus, fingerprint, name, key, build, num_rows=table.num_rows)
    return TableRows(arrays, has_documents=len(table.columns) == 1)


def write_rows(writer: ArrayWriter, table: Table) -> None:
    """Write the lengths of all rows, with 2 bytes for each number or, if they do not do, 4."""
    for kind in (np.uint16, np.uint32):
        writer.append(_ROWS, np.zeros((0, len(table.columns)), kind))
        for shard in table.shards:
            rows = _rows_of(shard, table.columns)
            shard.close()
            if rows.max(initial=0) > np.iinfo(kind).max:
                assert kind is not np.uint32, f"{shard.path} has a row of over 2 billion tokens"
                break
            writer.append(_ROWS, rows.astype(kind))
        else:
            return
        writer.discard(_ROWS)


def _rows_of(shard: Shard, columns: tuple[str, ...]) -> npt.NDArray[Any]:
    """(rows, columns): the numbers of the index for one shard."""
    lengths = [np.diff(shard.offsets(column)).astype(np.int64) for column in columns]
    if len(columns) > 1:
        return np.stack(lengths, axis=1)
    return (2 * lengths[0] + _begins(lengths[0], shard[DOCUMENT]))[:, None]


def _begins(lengths: LongArray, documents: IntArray) -> BoolArray:
    """Where a row has another document than the row with tokens before it in its shard."""
    begins = np.zeros(len(lengths), np.bool_)
    filled = np.flatnonzero(lengths)
    begins[filled[1:]] = np.diff(documents[filled]) != 0
    begins[filled[:1]] = True
    return begins


@dataclass(frozen=True, slots=True, kw_only=True)
class RowIndexTask:
    """The index of one table to write."""

    corpus: Path
    """Folder of the corpus."""
    file: str
    """Path of the index inside it."""
    key: str
    columns: tuple[str, ...]
    shards: tuple[tuple[Path, int], ...]
    """Where each shard is now, and its rows."""


def write_row_index(task: RowIndexTask) -> FileEntry:
    """Write the index of a table; gives its entry for the manifest."""
    table = Table(task.columns, [Shard(path, rows) for path, rows in task.shards])
    path = task.corpus / task.file
    build_file(path, task.key, lambda writer: write_rows(writer, table))
    return FileEntry.of(path, task.file)
