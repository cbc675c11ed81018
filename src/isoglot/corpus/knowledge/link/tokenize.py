"""Tokenizes shards of text and maps character spans to token spans; writes shards of the result.

A mention is marked in characters; the encoder sees tokens. A span becomes all tokens with one of
its characters: a token that reaches beyond the anchor text (often in scripts without spaces) is
part of the mention, so that masking the mention masks all of its anchor text.

The result of a shard is an Arrow file with its drop counts in the schema metadata: both are written
in one atomic step, so that an interrupted run continues with the shards it finds.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isoglot.atomic import write_bytes
from isoglot.corpus.knowledge.dataframes import EMPTY, SHARD
from isoglot.corpus.knowledge.link.joins import KEPT, NO_TOKENS, SHARED, TOO_LONG
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder, flatten_ids
from isoglot.corpus.tokenization.vocabulary import SPACE_MARK
from isoglot.types import IntArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from isoglot.types import BoolArray

_COUNTS = b"counts"
_BYTE_LEVEL_SPACE = "Ġ"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizeTask:
    """What the tokenization of every kind of shard needs."""

    shard: int
    tokenizer: Path
    special: tuple[int, ...]
    """Ids of [CLS], [SEP], [PAD] and [MASK], which no text may contain."""
    max_tokens: int
    output: Path
    excluded: Path | None = None
    """The index of the texts of evaluation files, which are left out; none: nothing is."""


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """Texts as ids, concatenated, and the characters of each id."""

    ids: IntArray
    lengths: IntArray
    """Ids of each text."""
    starts: LongArray
    """The first character of each id, counted through all texts."""
    ends: LongArray
    characters: LongArray
    """The first character of each text; texts are one character apart."""


class SpanTokenizer(HFEncoder):
    """Tokenizes texts and maps character spans to spans of ids; adds no special tokens."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        marks = map(self._tokenizer.token_to_id, (SPACE_MARK, _BYTE_LEVEL_SPACE))
        self._space_marks = [mark for mark in marks if mark is not None]

    def tokenize(self, texts: Sequence[str]) -> TokenizedTexts:
        """The ids of the texts and their characters."""
        encoded = self.encode_with_offsets(texts)
        ids, lengths = flatten_ids([numbers for numbers, _ in encoded])
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        characters = np.concatenate([[0], np.cumsum(sizes + 1)[:-1]]) if len(texts) else sizes
        places = chain.from_iterable(chain.from_iterable(spans for _, spans in encoded))
        offsets = np.fromiter(places, np.int64, 2 * len(ids)).reshape(-1, 2)
        _spread_bytes(offsets, lengths, texts)
        offsets += np.repeat(characters, lengths)[:, None]
        return TokenizedTexts(ids, lengths, offsets[:, 0], offsets[:, 1], characters)

    def spans(
        self, texts: TokenizedTexts, text: LongArray, start: LongArray, end: LongArray
    ) -> tuple[LongArray, LongArray]:
        """The tokens [first, last) of character spans, counted from the start of their texts.

        A span without tokens has first >= last.
        """
        base = texts.characters[text]
        # offsets never decrease inside a text; a composed character may leave a gap
        first = np.searchsorted(np.maximum.accumulate(texts.ends), base + start, "right")
        last = np.searchsorted(texts.starts, base + end, "left")
        begins = np.concatenate([[0], np.cumsum(texts.lengths, dtype=np.int64)])
        # the mark of the space before the text has the offsets of the text's first character
        at_start = (first == begins[text]) & (first < last)
        first[at_start] += np.isin(texts.ids[first[at_start]], self._space_marks)
        return first - begins[text], last - begins[text]


def _spread_bytes(offsets: LongArray, lengths: IntArray, texts: Sequence[str]) -> None:
    """Gives each byte token the character it belongs to (byte fallback).

    The tokenizer gives every byte of a run of unknown characters the offsets of the whole run.
    """
    owners = np.repeat(np.arange(len(texts)), lengths)
    begins = np.ones(len(offsets), np.bool_)
    begins[1:] = (offsets[1:] != offsets[:-1]).any(axis=1) | (owners[1:] != owners[:-1])
    first = np.flatnonzero(begins)
    sizes = np.diff(np.append(first, len(offsets)))
    wide = offsets[first, 1] - offsets[first, 0] > 1
    for start, size in zip(first[wide & (sizes > 1)], sizes[wide & (sizes > 1)], strict=True):
        low, high = offsets[start].tolist()
        widths = [len(letter.encode()) for letter in texts[owners[start]][low:high]]
        if sum(widths) == size:
            places = np.repeat(np.arange(low, high), widths)
            offsets[start : start + size] = np.stack([places, places + 1], axis=1)


def token_span(offsets: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """The tokens [first, last) with a character of [start, end), as `SpanTokenizer.spans`."""
    inside = [n for n, (begin, stop) in enumerate(offsets) if begin < end and stop > start]
    return (inside[0], inside[-1] + 1) if inside else None


def contain_any(ids: IntArray, lengths: IntArray, wanted: Sequence[int]) -> BoolArray:
    """For each of the concatenated texts: does it contain one of the wanted ids?"""
    found = np.zeros(len(lengths), np.bool_)
    found[np.repeat(np.arange(len(lengths)), lengths)[np.isin(ids, wanted)]] = True
    return found


def span_status(
    text: LongArray, first: LongArray, last: LongArray, *, max_tokens: int
) -> npt.NDArray[np.str_]:
    """The status of mentions with these tokens, which are sorted by text and place."""
    status = np.full(len(first), KEPT, dtype="<U24")
    width = int(last.max(initial=0)) + 1
    ends = text * width + last
    before = np.concatenate([[-1], np.maximum.accumulate(ends)[:-1]]) if len(ends) else ends
    status[text * width + first < before] = SHARED
    status[last - first > max_tokens] = TOO_LONG
    status[first >= last] = NO_TOKENS
    return status


def count_status(status: pa.ChunkedArray | npt.NDArray[np.str_]) -> Counter[str]:
    """The number of rows of each status."""
    names, numbers = np.unique(np.asarray(status, dtype=np.str_), return_counts=True)
    return Counter(dict(zip(names.tolist(), numbers.tolist(), strict=True)))


def token_lists(ids: IntArray, lengths: IntArray) -> pa.Array:
    """A column of token lists."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ids, pa.int32()))


def joined_rows(folder: Path, shard: int, order: Sequence[str]) -> pa.Table:
    """The rows that a join wrote for one shard, sorted; joins give them in any order."""
    files = sorted((folder / f"{SHARD}={shard}").glob("*.parquet")) or [folder / EMPTY]
    table = pa.concat_tables(pq.ParquetFile(file).read() for file in files)
    return table.sort_by([(column, "ascending") for column in order])


def write_shard(path: Path, table: pa.Table, counts: Counter[str]) -> None:
    """Writes a shard and its counts atomically."""
    table = table.combine_chunks().replace_schema_metadata({_COUNTS: json.dumps(counts)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    write_bytes(path, memoryview(sink.getvalue()))


def open_shard(path: Path) -> pa.Table:
    """A shard, memory-mapped."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def counts_of(shards: Iterable[pa.Table]) -> Counter[str]:
    """The counts of several shards, added."""
    total: Counter[str] = Counter()
    for shard in shards:
        total.update(json.loads(shard.schema.metadata[_COUNTS]))
    return total
