"""The prepared corpus on disk: Arrow IPC streams of token ids, written once, memory-mapped to read.

A shard is one record batch, uncompressed, so that a column is one contiguous buffer:

    text    ids: list<int32>,  document: int32         one row = one sentence
    pairs   first: list<int32>,  second: list<int32>   one row = one pair of translations

No special tokens are stored. The files are plain Arrow and open in datasets (which reads streams
and not Arrow's file format), polars and duckdb.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from isoglot.corpus.disk import write_atomically
from isoglot.types import IntArray

if TYPE_CHECKING:
    from pathlib import Path


DOCUMENT = "document"
"""The column of text shards that numbers documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardEntry:
    """What the manifest knows of one shard."""

    file: str
    """Path inside the corpus folder, with forward slashes."""
    rows: int
    tokens: dict[str, int]
    """Column -> number of tokens."""
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows on their way to disk: per column, all its tokens and how many of them each row has."""

    tokens: Mapping[str, IntArray]
    lengths: Mapping[str, IntArray]
    document: IntArray | None = None
    """The document of each row, for text."""

    @property
    def num_rows(self) -> int:
        """Rows, the same in every column."""
        return len(next(iter(self.lengths.values())))

    def split(self, row: int) -> tuple[Chunk, Chunk]:
        """The rows before this one, and the others."""
        cuts = {column: int(lengths[:row].sum()) for column, lengths in self.lengths.items()}
        return (
            Chunk(
                {column: tokens[: cuts[column]] for column, tokens in self.tokens.items()},
                {column: lengths[:row] for column, lengths in self.lengths.items()},
                None if self.document is None else self.document[:row],
            ),
            Chunk(
                {column: tokens[cuts[column] :] for column, tokens in self.tokens.items()},
                {column: lengths[row:] for column, lengths in self.lengths.items()},
                None if self.document is None else self.document[row:],
            ),
        )


class ShardWriter:
    """Collects the rows of one (source, language, split) and writes a shard whenever it is full."""

    def __init__(
        self, corpus: Path, prefix: str, metadata: Mapping[str, str], *, shard_tokens: int
    ) -> None:
        """Shards are named `<prefix>-00000.arrow`, relative to the corpus folder."""
        self._corpus = corpus
        self._prefix = prefix
        self._metadata = dict(metadata)
        self._shard_tokens = shard_tokens
        self._chunks: list[Chunk] = []
        self._num_tokens = 0
        self.entries: list[ShardEntry] = []

    def append(self, chunk: Chunk) -> None:
        """Adds rows; the row that fills a shard is its last."""
        while chunk.num_rows:
            ends = self._num_tokens + np.cumsum(sum(chunk.lengths.values()))
            fitting = int(np.searchsorted(ends, self._shard_tokens)) + 1
            part, chunk = chunk.split(fitting)
            self._chunks.append(part)
            self._num_tokens = int(ends[part.num_rows - 1])
            if self._num_tokens >= self._shard_tokens:
                self._write()

    def close(self) -> list[ShardEntry]:
        """Writes what is left and returns all shards."""
        if self._num_tokens:
            self._write()
        return self.entries

    def _write(self) -> None:
        batch, tokens = self._batch()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = memoryview(sink.getvalue())
        file = f"{self._prefix}-{len(self.entries):05d}.arrow"
        write_atomically(self._corpus / file, data)
        self.entries.append(
            ShardEntry(
                file=file,
                rows=batch.num_rows,
                tokens=tokens,
                bytes=len(data),
                sha256=sha256(data).hexdigest(),
            )
        )
        self._chunks = []
        self._num_tokens = 0

    def _batch(self) -> tuple[pa.RecordBatch, dict[str, int]]:
        arrays: dict[str, pa.Array] = {}
        tokens: dict[str, int] = {}
        for column in self._chunks[0].tokens:
            values = np.concatenate([chunk.tokens[column] for chunk in self._chunks])
            lengths = np.concatenate([chunk.lengths[column] for chunk in self._chunks])
            offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
            np.cumsum(lengths, out=offsets[1:])
            arrays[column] = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
            tokens[column] = len(values)
        documents = [chunk.document for chunk in self._chunks if chunk.document is not None]
        if documents:
            arrays[DOCUMENT] = pa.array(np.concatenate(documents))
        fields = [pa.field(name, array.type, nullable=False) for name, array in arrays.items()]
        schema = pa.schema(fields, metadata=self._metadata)
        return pa.record_batch(list(arrays.values()), schema=schema), tokens
