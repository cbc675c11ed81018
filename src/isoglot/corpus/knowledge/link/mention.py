"""Sentences with mentions, tokenized; a function of one shard of sentences.

Of pages that mention an entity, all sentences are kept: the neighbours of a mention's sentence are
its context.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from isoglot.corpus.knowledge.link.fates import KEPT, NO_DESCRIPTION, REPEATED, SPECIAL
from isoglot.corpus.knowledge.link.parts import rows_of_shard, tally, token_lists, write_part
from isoglot.corpus.knowledge.link.spans import SpanEncoder, span_fates
from isoglot.types import BoolArray, IntArray, LongArray

_SENTENCES_AT_A_TIME = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionTask:
    """All that is needed to tokenize the sentences of one shard, in this process or another."""

    sentences: Path
    """The shard: page, index, text, links."""
    shard: int
    links: Path
    """Folder of the joined links: page, index, start, end, item, fate."""
    entities: Path
    """A numpy file: the items that are described, ascending."""
    tokenizer: Path
    structural: tuple[int, ...]
    """Ids of [CLS] and its like, which no text may hold."""
    longest: int
    output: Path
    """Where sentences go; mentions go beside them."""

    @property
    def mentions(self) -> Path:
        """Where mentions go. Written last: where they are, sentences are too."""
        return self.output.with_suffix(".mentions.arrow")


@dataclass(frozen=True, slots=True)
class _Links:
    """Links of known entities, sorted by the place in the text."""

    row: LongArray
    """The row of the sentence."""
    start: LongArray
    end: LongArray
    entity: IntArray

    def within(self, first: int, last: int) -> _Links:
        """Those of some rows, which are counted from 0 again."""
        low, high = np.searchsorted(self.row, [first, last])
        chosen = slice(low, high)
        return _Links(
            self.row[chosen] - first, self.start[chosen], self.end[chosen], self.entity[chosen]
        )


def mention(task: MentionTask) -> Path:
    """Writes the sentences of one shard (page, tokens) and their mentions, both in page order."""
    if task.mentions.is_file():
        return task.output
    sentences = pq.read_table(task.sentences, columns=["page", "index", "text", "links"])
    read = pc.sum(pc.list_value_length(sentences["links"])).as_py() or 0
    sentences = _once(sentences.drop_columns("links"))
    joined = rows_of_shard(task.links, task.shard, ("page", "index", "start", "end", "item"))
    assert (0 if joined is None else joined.num_rows) == read, "a row for every link"
    counts: Counter[str] = Counter()
    kept = sentences.slice(0, 0)
    none = np.zeros(0, np.int64)
    links = _Links(none, none, none, none.astype(np.int32))
    if joined is not None:
        joined, dropped = _known(joined, np.load(task.entities, mmap_mode="r"))
        counts.update(dropped)
        kept = sentences.filter(pc.is_in(sentences["page"], joined["page"].combine_chunks()))
        links = _place(kept, joined)
    tables, found = _encode(task, kept, links)
    counts.update(found)
    write_part(task.output, tables[0], Counter())
    write_part(task.mentions, tables[1], counts)
    return task.output


def _once(sentences: pa.Table) -> pa.Table:
    """Sentences in page order, one for each place: a page may be in the dump twice."""
    table = sentences.sort_by([("page", "ascending"), ("index", "ascending")])
    return table.filter(pa.array(~_repeats(table, "page", "index")))


def _repeats(table: pa.Table, *columns: str) -> BoolArray:
    """For each row of a sorted table: has the row before it the same values?"""
    same = np.ones(table.num_rows, np.bool_)
    same[:1] = False
    for column in columns:
        values = table[column].to_numpy()
        same[1:] &= values[1:] == values[:-1]
    return same


def _known(joined: pa.Table, described: LongArray) -> tuple[pa.Table, Counter[str]]:
    """The links whose entity is described, with its number; the others counted."""
    fates = np.asarray(joined["fate"], dtype=np.dtype("<U24"))
    items = joined["item"].fill_null(-1).to_numpy()
    number = np.searchsorted(described, items)
    number = np.minimum(number, len(described) - 1) if len(described) else number
    known = described[number] == items if len(described) else np.zeros(len(items), np.bool_)
    fates[(fates == KEPT) & ~known] = NO_DESCRIPTION
    fates[(fates == KEPT) & _repeats(joined, "page", "index", "start", "end")] = REPEATED
    kept = fates == KEPT
    table = joined.append_column("entity", pa.array(number, pa.int32())).filter(pa.array(kept))
    return table, tally(fates[~kept])


def _place(sentences: pa.Table, links: pa.Table) -> _Links:
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


def _encode(
    task: MentionTask, sentences: pa.Table, links: _Links
) -> tuple[tuple[pa.Table, pa.Table], Counter[str]]:
    encoder = SpanEncoder(task.tokenizer)
    counts: Counter[str] = Counter()
    texts, marks = [_no_sentences()], [_no_mentions()]
    written = 0
    for first in range(0, sentences.num_rows, _SENTENCES_AT_A_TIME):
        some = sentences.slice(first, _SENTENCES_AT_A_TIME)
        text, mark, fates = _encode_some(
            encoder, some, links.within(first, first + some.num_rows), task
        )
        column = pa.array(mark["sentence"].to_numpy() + written)
        marks.append(mark.set_column(0, "sentence", column))
        texts.append(text)
        counts.update(fates)
        written += text.num_rows
    return (pa.concat_tables(texts), pa.concat_tables(marks)), counts


def _encode_some(
    encoder: SpanEncoder, sentences: pa.Table, links: _Links, task: MentionTask
) -> tuple[pa.Table, pa.Table, Counter[str]]:
    encoded = encoder.encode(sentences["text"].to_pylist())
    owners = np.repeat(np.arange(len(encoded.lengths)), encoded.lengths)
    special = np.zeros(len(encoded.lengths), np.bool_)
    special[owners[np.isin(encoded.ids, task.structural)]] = True
    start, end = encoder.spans(encoded, links.row, links.start, links.end)
    fates = span_fates(links.row, start, end, longest=task.longest)
    fates[special[links.row]] = SPECIAL
    keep = ~special & (encoded.lengths > 0)
    rows = np.cumsum(keep) - 1
    good = fates == KEPT
    text = pa.table(
        {
            "page": sentences["page"].filter(pa.array(keep)),
            "tokens": token_lists(
                encoded.ids[np.repeat(keep, encoded.lengths)], encoded.lengths[keep]
            ),
        }
    )
    mark = pa.table(
        {
            "sentence": pa.array(rows[links.row[good]], pa.int64()),
            "start": pa.array(start[good], pa.int32()),
            "end": pa.array(end[good], pa.int32()),
            "entity": pa.array(links.entity[good], pa.int32()),
        }
    )
    return text, mark, tally(fates)


def _no_sentences() -> pa.Table:
    none = np.zeros(0, np.int32)
    return pa.table({"page": pa.array(none, pa.int64()), "tokens": token_lists(none, none)})


def _no_mentions() -> pa.Table:
    kinds = {"sentence": pa.int64(), "start": pa.int32(), "end": pa.int32(), "entity": pa.int32()}
    return pa.schema(list(kinds.items())).empty_table()
