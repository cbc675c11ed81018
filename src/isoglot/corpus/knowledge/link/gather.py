"""Parts into the order of the store: descriptions by entity, sentences by page.

Parts are mapped files in the order of their shards; a store is sorted. Only numbers are sorted in
memory, eight bytes an item or a page; tokens are copied a few thousand rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from isoglot.corpus.knowledge.store_split import are_held_out
from isoglot.types import LongArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.corpus.heldout import Split

_ROWS_AT_A_TIME = 8192


class Descriptions:
    """The descriptions of one language, in the order of their items."""

    def __init__(self, parts: Sequence[pa.Table]) -> None:
        """`parts` hold item and tokens; of an item that is there twice, the first is taken."""
        self._parts = parts
        found = [part["item"].to_numpy() for part in parts]
        items = np.concatenate([np.zeros(0, np.int64), *found])
        sizes = [len(part) for part in found]
        self.items, rows = np.unique(items, return_index=True)
        self.repeated = len(items) - len(self.items)
        ends = np.cumsum(sizes)
        self._part = np.searchsorted(ends, rows, "right")
        self._row = rows - (ends - sizes)[self._part] if len(rows) else rows

    def batches(self, entities: LongArray) -> Iterator[pa.Table]:
        """Rows of entity, tokens; `entities` are all items of the store, ascending."""
        numbers = np.searchsorted(entities, self.items)
        for first in range(0, len(numbers), _ROWS_AT_A_TIME):
            some = slice(first, first + _ROWS_AT_A_TIME)
            part, row = self._part[some], self._row[some]
            owners = np.unique(part)
            taken = [self._parts[n].column("tokens").take(row[part == n]) for n in owners]
            tokens = pa.chunked_array([chunk for column in taken for chunk in column.chunks])
            # rows came part by part; back to the order of the items
            back = np.empty(len(part), np.int64)
            back[np.argsort(part, kind="stable")] = np.arange(len(part))
            yield pa.table(
                {
                    "entity": pa.array(numbers[some], pa.int32()),
                    "tokens": tokens.combine_chunks().take(back),
                }
            )


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows of one part that are next to each other in the store, too."""

    part: int
    rows: LongArray
    """Ascending."""
    first: int
    """The row of the store where they begin."""


class Sentences:
    """The sentences and mentions of one language, page after page."""

    def __init__(
        self,
        parts: Sequence[tuple[pa.Table, pa.Table]],
        *,
        heldout_share: float,
        heldout_seed: int,
    ) -> None:
        """`parts` are sentences (page, tokens) and mentions; a page's second coming is left out."""
        self._parts = parts
        pages, part, first, count = [], [], [], []
        for number, (sentences, _) in enumerate(parts):
            page, row, rows = np.unique(
                sentences["page"].to_numpy(), return_index=True, return_counts=True
            )
            pages.append(page)
            part.append(np.full(len(page), number))
            first.append(row)
            count.append(rows)
        none = [np.zeros(0, np.int64)]
        found, where = np.unique(np.concatenate(none + pages), return_index=True)
        held_out = are_held_out(found, share=heldout_share, seed=heldout_seed)
        self._places = {
            split: tuple(np.concatenate(none + column)[chosen] for column in (part, first, count))
            for split, chosen in (("train", where[~held_out]), ("heldout", where[held_out]))
        }
        self.mentions_read = sum(len(mentions) for _, mentions in parts)

    def sentences(self, split: Split) -> Iterator[pa.Table]:
        """Rows of page, tokens."""
        for run in self._runs(split):
            table = self._parts[run.part][0]
            for first in range(0, len(run.rows), _ROWS_AT_A_TIME):
                yield table.take(run.rows[first : first + _ROWS_AT_A_TIME])

    def mentions(self, split: Split) -> Iterator[pa.Table]:
        """Rows of sentence (its row in the split), start, end, entity."""
        for run in self._runs(split):
            table = self._parts[run.part][1]
            sentence = table["sentence"].to_numpy()
            low, high = np.searchsorted(sentence, [run.rows[0], run.rows[-1] + 1])
            place = np.searchsorted(run.rows, sentence[low:high])
            ours = run.rows[place] == sentence[low:high]
            some = table.slice(low, high - low).filter(pa.array(ours))
            yield some.set_column(0, "sentence", pa.array(run.first + place[ours], pa.int64()))

    def _runs(self, split: Split) -> Iterator[_Run]:
        part, first, count = self._places[split]
        edges = np.flatnonzero(np.diff(part)) + 1
        begin = 0
        for chosen in np.split(np.arange(len(part)), edges) if len(part) else []:
            starts, sizes = first[chosen], count[chosen]
            within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            rows = np.repeat(starts, sizes) + within
            yield _Run(int(part[chosen[0]]), rows, begin)
            begin += len(rows)
