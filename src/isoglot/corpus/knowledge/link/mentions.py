"""Sentences and mentions of entities, tokenized one shard of sentences at a time.

Of a page that mentions an entity all sentences are kept: the neighbors of a mention's sentence are
its context.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from isoglot.corpus.knowledge.link.excluded import are_excluded
from isoglot.corpus.knowledge.link.joins import (
    EXCLUDED,
    KEPT,
    NO_DESCRIPTION,
    REPEATED,
    SPECIAL,
)
from isoglot.corpus.knowledge.link.tokenize import (
    SpanTokenizer,
    TokenizeTask,
    contain_any,
    count_status,
    joined_rows,
    span_status,
    token_lists,
    write_shard,
)
from isoglot.corpus.knowledge.store_writer import are_held_out
from isoglot.types import BoolArray, IntArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.corpus.storage.shards import Split

_BATCH_SENTENCES = 4096
_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionTask(TokenizeTask):
    """The tokenization of one shard: sentences go to `output`, mentions beside it."""

    sentences: Path
    """The shard: page, index, text, links."""
    links: Path
    """Folder of the joined links: page, index, start, end, item, status."""
    entities: Path
    """A numpy file: the items with a description, ascending."""

    @property
    def mentions(self) -> Path:
        """The file of mentions, written last: if it exists, sentences do too."""
        return self.output.with_suffix(".mentions.arrow")


def mention(task: MentionTask) -> Path:
    """Writes the sentences of one shard (page, tokens) and their mentions, both in page order."""
    if task.mentions.is_file():
        return task.output
    sentences = pq.read_table(task.sentences, columns=["page", "index", "text", "links"])
    num_links = pc.sum(pc.list_value_length(sentences["links"])).as_py() or 0
    sentences = sentences.sort_by([("page", "ascending"), ("index", "ascending")])
    # a page may be in the dump twice
    sentences = sentences.filter(pa.array(~_repeats(sentences, "page", "index")))
    joined = joined_rows(task.links, task.shard, ("page", "index", "start", "end", "item"))
    assert joined.num_rows == num_links, "a row for every link"
    known, dropped = _known_entities(joined, np.load(task.entities, mmap_mode="r"))
    kept = sentences.filter(pc.is_in(sentences["page"], known["page"].combine_chunks()))
    tables, counts = _tokenize(task, kept, _locate(kept, known))
    write_shard(task.output, tables[0], Counter())
    write_shard(task.mentions, tables[1], dropped + counts)
    return task.output


@dataclass(frozen=True, slots=True)
class _Links:
    """Links of known entities, sorted by the place in the text."""

    row: LongArray
    """The row of the sentence."""
    start: LongArray
    end: LongArray
    entity: IntArray

    def within(self, first: int, last: int) -> _Links:
        """The links of the rows [first, last), rows counted from `first`."""
        low, high = np.searchsorted(self.row, [first, last])
        some = slice(low, high)
        return _Links(self.row[some] - first, self.start[some], self.end[some], self.entity[some])


def _repeats(table: pa.Table, *columns: str) -> BoolArray:
    """For each row of a sorted table: has the row before it the same values?"""
    same = np.ones(table.num_rows, np.bool_)
    same[:1] = False
    for column in columns:
        values = table[column].to_numpy()
        same[1:] &= values[1:] == values[:-1]
    return same


def _known_entities(joined: pa.Table, described: LongArray) -> tuple[pa.Table, Counter[str]]:
    """The links whose entity has a description, with its number; the counts of the others."""
    status = np.asarray(joined["status"], dtype=np.dtype("<U24"))
    items = joined["item"].fill_null(-1).to_numpy()
    number = np.searchsorted(described, items)
    number = np.minimum(number, len(described) - 1) if len(described) else number
    known = described[number] == items if len(described) else np.zeros(len(items), np.bool_)
    status[(status == KEPT) & ~known] = NO_DESCRIPTION
    status[(status == KEPT) & _repeats(joined, "page", "index", "start", "end")] = REPEATED
    kept = status == KEPT
    table = joined.append_column("entity", pa.array(number, pa.int32())).filter(pa.array(kept))
    return table, count_status(status[~kept])


def _locate(sentences: pa.Table, links: pa.Table) -> _Links:
    """The row of each link's sentence; both tables are sorted by page and index."""
    pages = np.unique(sentences["page"].to_numpy())

    def key(table: pa.Table) -> LongArray:
        rank = np.searchsorted(pages, table["page"].to_numpy())
        places: LongArray = (rank.astype(np.int64) << 32) + table["index"].to_numpy()
        return places

    return _Links(
        np.searchsorted(key(sentences), key(links)).astype(np.int64),
        links["start"].to_numpy().astype(np.int64),
        links["end"].to_numpy().astype(np.int64),
        links["entity"].to_numpy(),
    )


def _tokenize(
    task: MentionTask, sentences: pa.Table, links: _Links
) -> tuple[tuple[pa.Table, pa.Table], Counter[str]]:
    """All sentences and mentions, and the counts of mentions by status."""
    tokenizer = SpanTokenizer(task.tokenizer)
    counts: Counter[str] = Counter()
    none = np.zeros(0, np.int32)
    texts = [pa.table({"page": pa.array(none, pa.int64()), "tokens": token_lists(none, none)})]
    columns = [("sentence", pa.int64()), ("start", pa.int32()), ("end", pa.int32())]
    mentions = [pa.schema([*columns, ("entity", pa.int32())]).empty_table()]
    written = 0
    for first in range(0, sentences.num_rows, _BATCH_SENTENCES):
        batch = sentences.slice(first, _BATCH_SENTENCES)
        inside = links.within(first, first + batch.num_rows)
        text, found, status = _tokenize_batch(tokenizer, batch, inside, task)
        rows = pa.array(found["sentence"].to_numpy() + written)
        mentions.append(found.set_column(0, "sentence", rows))
        texts.append(text)
        counts.update(status)
        written += text.num_rows
    return (pa.concat_tables(texts), pa.concat_tables(mentions)), counts


def _tokenize_batch(
    tokenizer: SpanTokenizer, sentences: pa.Table, links: _Links, task: MentionTask
) -> tuple[pa.Table, pa.Table, Counter[str]]:
    encoded = tokenizer.tokenize(sentences["text"].to_pylist())
    special = contain_any(encoded.ids, encoded.lengths, task.special)
    excluded = are_excluded(sentences["text"].to_pylist(), task.excluded)
    start, end = tokenizer.spans(encoded, links.row, links.start, links.end)
    status = span_status(links.row, start, end, max_tokens=task.max_tokens)
    status[special[links.row]] = SPECIAL
    status[excluded[links.row]] = EXCLUDED
    keep = ~special & ~excluded & (encoded.lengths > 0)
    rows = np.cumsum(keep) - 1
    good = status == KEPT
    ids, lengths = encoded.ids[np.repeat(keep, encoded.lengths)], encoded.lengths[keep]
    text = pa.table(
        {"page": sentences["page"].filter(pa.array(keep)), "tokens": token_lists(ids, lengths)}
    )
    mentions = pa.table(
        {
            "sentence": pa.array(rows[links.row[good]], pa.int64()),
            "start": pa.array(start[good], pa.int32()),
            "end": pa.array(end[good], pa.int32()),
            "entity": pa.array(links.entity[good], pa.int32()),
        }
    )
    return text, mentions, count_status(status)


class SortedSentences:
    """The sentences and mentions of one language in the order of the store: by page.

    Shards are mapped. Only pages are sorted in memory, eight bytes each.
    """

    def __init__(
        self,
        shards: Sequence[tuple[pa.Table, pa.Table]],
        *,
        heldout_share: float,
        heldout_seed: int,
    ) -> None:
        """`shards` are sentences (page, tokens) and mentions; a repeated page is left out."""
        self._shards = shards
        pages = [
            np.unique(sentences["page"].to_numpy(), return_index=True, return_counts=True)
            for sentences, _ in shards
        ]
        page, first, count = (np.concatenate(column) for column in zip(*pages, strict=True))
        shard = np.repeat(np.arange(len(pages)), [len(found) for found, _, _ in pages])
        unique, where = np.unique(page, return_index=True)
        held_out = are_held_out(unique, share=heldout_share, seed=heldout_seed)
        self._places = {
            split: (shard[chosen], first[chosen], count[chosen])
            for split, chosen in (("train", where[~held_out]), ("heldout", where[held_out]))
        }

    def sentences(self, split: Split) -> Iterator[pa.Table]:
        """Rows of page, tokens."""
        for (table, _), rows, _ in self._runs(split):
            for first in range(0, len(rows), _BATCH_ROWS):
                yield table.take(rows[first : first + _BATCH_ROWS])

    def mentions(self, split: Split) -> Iterator[pa.Table]:
        """Rows of sentence (its row in the split), start, end, entity."""
        for (_, table), rows, first in self._runs(split):
            sentence = table["sentence"].to_numpy()
            low, high = np.searchsorted(sentence, [rows[0], rows[-1] + 1])
            place = np.searchsorted(rows, sentence[low:high])
            ours = rows[place] == sentence[low:high]
            some = table.slice(low, high - low).filter(pa.array(ours))
            yield some.set_column(0, "sentence", pa.array(first + place[ours], pa.int64()))

    def _runs(self, split: Split) -> Iterator[tuple[tuple[pa.Table, pa.Table], LongArray, int]]:
        """Rows of a shard that are consecutive in the store: shard, rows, the store's first row."""
        shard, first, count = self._places[split]
        edges = np.flatnonzero(np.diff(shard)) + 1
        begin = 0
        for chosen in np.split(np.arange(len(shard)), edges) if len(shard) else []:
            starts, sizes = first[chosen], count[chosen]
            within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            rows = np.repeat(starts, sizes) + within
            yield self._shards[shard[chosen[0]]], rows, begin
            begin += len(rows)
