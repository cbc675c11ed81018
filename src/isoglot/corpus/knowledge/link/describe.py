"""Descriptions of entities: the lead of each page, tokenized; a function of one shard of pages.

XLM-K section 3.1: a Wikipedia page describes its entity, in the page's language, by its first 256
tokens.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isoglot.corpus.knowledge.link.fates import KEPT, NO_LEAD, NO_TOKENS, SPECIAL
from isoglot.corpus.knowledge.link.parts import rows_of_shard, tally, token_lists, write_part
from isoglot.corpus.tokenizer import Encoder

if TYPE_CHECKING:
    from isoglot.types import BoolArray, IntArray

_TEXTS_AT_A_TIME = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTask:
    """All that is needed to tokenize the leads of one shard, in this process or another."""

    pages: Path
    """The shard: page, lead."""
    shard: int
    entities: Path
    """Folder of the joined pages: page, item, fate."""
    tokenizer: Path
    structural: tuple[int, ...]
    """Ids of [CLS] and its like, which no text may hold."""
    longest: int
    output: Path


def describe(task: DescribeTask) -> Path:
    """Writes the descriptions of one shard: item, tokens; no order is promised."""
    if task.output.is_file():
        return task.output
    pages = pq.read_table(task.pages, columns=["page", "lead"]).sort_by("page")
    joined = rows_of_shard(task.entities, task.shard, ("page", "fate", "item"))
    assert (0 if joined is None else joined.num_rows) == pages.num_rows, "a row for every page"
    counts: Counter[str] = Counter()
    parts = [_empty()]
    if joined is not None:
        fates = np.asarray(joined["fate"], dtype=np.str_)
        counts.update(tally(fates[fates != KEPT]))
        kept = pa.array(fates == KEPT)
        leads, items = pages["lead"].filter(kept), joined["item"].filter(kept)
        encoder = Encoder(task.tokenizer)
        for first in range(0, len(items), _TEXTS_AT_A_TIME):
            chosen = slice(first, first + _TEXTS_AT_A_TIME)
            part, found = _describe(encoder, leads[chosen], items[chosen], task)
            parts.append(part)
            counts.update(found)
    write_part(task.output, pa.concat_tables(parts), counts)
    return task.output


def _describe(
    encoder: Encoder, leads: pa.ChunkedArray, items: pa.ChunkedArray, task: DescribeTask
) -> tuple[pa.Table, Counter[str]]:
    texts = [lead or "" for lead in leads.to_pylist()]
    ids, lengths = encoder.encode(texts)
    ids, lengths = _cut(ids, lengths, task.longest)
    owners = np.repeat(np.arange(len(texts)), lengths)
    special = np.zeros(len(texts), np.bool_)
    special[owners[np.isin(ids, task.structural)]] = True
    fates = np.full(len(texts), KEPT, dtype="<U24")
    fates[special] = SPECIAL
    fates[lengths == 0] = NO_TOKENS
    fates[[not text for text in texts]] = NO_LEAD
    kept: BoolArray = fates == KEPT
    table = pa.table(
        {
            "item": items.filter(pa.array(kept)).cast(pa.int64()),
            "tokens": token_lists(ids[np.repeat(kept, lengths)], lengths[kept]),
        }
    )
    return table, tally(fates)


def _cut(ids: IntArray, lengths: IntArray, longest: int) -> tuple[IntArray, IntArray]:
    """The first tokens of each text."""
    starts = np.cumsum(lengths) - lengths
    place = np.arange(len(ids)) - np.repeat(starts, lengths)
    return ids[place < longest], np.minimum(lengths, longest)


def _empty() -> pa.Table:
    none = np.zeros(0, np.int32)
    return pa.table({"item": pa.array(none, pa.int64()), "tokens": token_lists(none, none)})
