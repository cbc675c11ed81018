"""Descriptions of entities: the opening of each page, tokenized one shard of pages at a time.

XLM-K, Knowledge Construction, Multilingual Entity Description: a Wikipedia page describes its
entity, in the page's language, by its first 256 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isoglot.corpus.knowledge.link.excluded import excluded_sentences, leave_out
from isoglot.corpus.knowledge.link.joins import KEPT, NO_TEXT, NO_TOKENS, SPECIAL
from isoglot.corpus.knowledge.link.tokenize import (
    TokenizeTask,
    contain_any,
    count_status,
    joined_rows,
    token_lists,
    write_shard,
)
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from isoglot.types import BoolArray, LongArray

_BATCH_TEXTS = 4096
_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTask(TokenizeTask):
    """The tokenization of the openings of one shard."""

    pages: Path
    """The shard: page, opening, lead."""
    column: str
    """`opening`, or `lead` for the text before the first heading alone."""
    entities: Path
    """Folder of the joined pages: page, item, status."""
    sentences: Path | None = None
    """The shard with the sentences of these pages, where texts are excluded."""


def describe(task: DescribeTask) -> Path:
    """Writes the descriptions of one shard: item, tokens, in the order of pages."""
    if task.output.is_file():
        return task.output
    pages = pq.read_table(task.pages, columns=["page", task.column]).sort_by("page")
    pages = _without_excluded(pages, task)
    joined = joined_rows(task.entities, task.shard, ("page", "status", "item"))
    assert joined.num_rows == pages.num_rows, "a row for every page"
    status = np.asarray(joined["status"], dtype=np.str_)
    counts = count_status(status[status != KEPT])
    kept = pa.array(status == KEPT)
    texts, items = pages[task.column].filter(kept), joined["item"].filter(kept)
    none = np.zeros(0, np.int32)
    tables = [pa.table({"item": pa.array(none, pa.int64()), "tokens": token_lists(none, none)})]
    encoder = HFEncoder(task.tokenizer)
    for first in range(0, len(items), _BATCH_TEXTS):
        batch = slice(first, first + _BATCH_TEXTS)
        table, found = _describe(encoder, texts[batch], items[batch], task)
        tables.append(table)
        counts.update(found)
    write_shard(task.output, pa.concat_tables(tables), counts)
    return task.output


def _without_excluded(pages: pa.Table, task: DescribeTask) -> pa.Table:
    """The pages without the sentences of evaluation files."""
    if task.sentences is None:
        return pages
    found = excluded_sentences(task.sentences, task.excluded)
    if not found:
        return pages
    texts = pages[task.column].to_pylist()
    for place, page in enumerate(pages["page"].to_pylist()):
        if texts[place] and page in found:
            texts[place] = leave_out(texts[place], found[page])
    return pages.set_column(1, task.column, pa.array(texts, pa.string()))


def _describe(
    encoder: HFEncoder, openings: pa.ChunkedArray, items: pa.ChunkedArray, task: DescribeTask
) -> tuple[pa.Table, Counter[str]]:
    texts = [opening or "" for opening in openings.to_pylist()]
    ids, lengths = encoder.encode(texts)
    place = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ids, lengths = ids[place < task.max_tokens], np.minimum(lengths, task.max_tokens)
    status = np.full(len(texts), KEPT, dtype="<U24")
    status[contain_any(ids, lengths, task.special)] = SPECIAL
    status[lengths == 0] = NO_TOKENS
    status[[not text for text in texts]] = NO_TEXT
    kept: BoolArray = status == KEPT
    table = pa.table(
        {
            "item": items.filter(pa.array(kept)).cast(pa.int64()),
            "tokens": token_lists(ids[np.repeat(kept, lengths)], lengths[kept]),
        }
    )
    return table, count_status(status)


class SortedDescriptions:
    """The descriptions of one language in the order of the store: by item.

    Shards are mapped. Only items are sorted in memory, eight bytes each; tokens are copied a few
    thousand rows at a time.
    """

    def __init__(self, shards: Sequence[pa.Table]) -> None:
        """`shards` hold item and tokens; of an item that occurs twice, the first is taken."""
        self._shards = shards
        found = [shard["item"].to_numpy() for shard in shards]
        items = np.concatenate([np.zeros(0, np.int64), *found])
        sizes = [len(shard) for shard in found]
        self.items, rows = np.unique(items, return_index=True)
        self.repeated = len(items) - len(self.items)
        ends = np.cumsum(sizes)
        self._shard = np.searchsorted(ends, rows, "right")
        self._row = rows - (ends - sizes)[self._shard] if len(rows) else rows

    def batches(self, entities: LongArray) -> Iterator[pa.Table]:
        """Rows of entity, tokens; `entities` are all items of the store, ascending."""
        numbers = np.searchsorted(entities, self.items)
        for start in range(0, len(numbers), _BATCH_ROWS):
            batch = slice(start, start + _BATCH_ROWS)
            shard, row = self._shard[batch], self._row[batch]
            owners = np.unique(shard)
            taken = [self._shards[n].column("tokens").take(row[shard == n]) for n in owners]
            tokens = pa.chunked_array([chunk for column in taken for chunk in column.chunks])
            # rows came shard by shard; back to the order of the items
            back = np.empty(len(shard), np.int64)
            back[np.argsort(shard, kind="stable")] = np.arange(len(shard))
            yield pa.table(
                {
                    "entity": pa.array(numbers[batch], pa.int32()),
                    "tokens": tokens.combine_chunks().take(back),
                }
            )
