"""Writes the shards of one (source, language, split); `shards.py` has their format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from isoglot.atomic import replace_file, write_errors
from isoglot.corpus.storage.shards import DOCUMENT, FileEntry, ShardEntry
from isoglot.types import IntArray

if TYPE_CHECKING:
    from pathlib import Path


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
