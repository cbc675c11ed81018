"""The rows of a table that a stream reads, found once and mapped by all processes.

What is stored is the smaller of two lists: the rows that are kept, or those that are left out. With
the j-th row that is left out less j (the rows kept before it), the n-th kept row is found by
bisection. Most streams leave out few rows or none, so billions of rows need little memory.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isoglot.batching.dropped import DropCounter, Dropped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isoglot.batching.dropped import Limit
    from isoglot.corpus.storage.array_file import Arrays, ArrayWriter
    from isoglot.types import BoolArray, IntArray, LongArray

_KEPT, _BEFORE = "kept", "before"


class Chunk(NamedTuple):
    """Some consecutive rows, looked at together."""

    limits: list[Limit]
    """What drops rows."""
    tokens: LongArray | IntArray
    """The tokens of each row."""
    lengths: LongArray | IntArray
    """The tokens of the longest sequence of each row."""

    @property
    def good(self) -> BoolArray:
        """Which rows are kept."""
        good: BoolArray = np.logical_and.reduce([limit.good for limit in self.limits])
        return good

    def first(self, number: int) -> Chunk:
        """The first rows only."""
        limits = [
            limit._replace(
                good=limit.good[:number],
                lengths=None if limit.lengths is None else limit.lengths[:number],
            )
            for limit in self.limits
        ]
        return Chunk(limits, self.tokens[:number], self.lengths[:number])


def find_kept(
    writer: ArrayWriter, chunks: Callable[[], Iterator[Chunk]], max_kept: int | None = None
) -> None:
    """Write the rows that are kept, at most the first `max_kept`, and facts about those looked at.

    `chunks` gives all rows; it is called again if more rows are left out than kept.
    """
    counter = DropCounter()
    num_kept = num_tokens = num_rows = 0
    longest = (0, -1)
    writer.append(_BEFORE, np.zeros(0, np.int64))
    for chunk in _until(chunks(), max_kept):
        good = chunk.good
        counter.add(chunk.limits)
        place = int(np.argmax(chunk.lengths))
        if chunk.lengths[place] > longest[1]:
            longest = (num_rows + place, int(chunk.lengths[place]))
        num_tokens += int(chunk.tokens[good].sum(dtype=np.int64))
        left_out = np.flatnonzero(~good)
        writer.append(_BEFORE, num_kept + left_out - np.arange(len(left_out)))
        num_kept, num_rows = num_kept + int(good.sum()), num_rows + len(good)
    if num_rows - num_kept > num_kept:
        writer.discard(_BEFORE)
        writer.append(_KEPT, np.zeros(0, np.int64))
        start = 0
        for chunk in _until(chunks(), max_kept):
            writer.append(_KEPT, start + np.flatnonzero(chunk.good))
            start += len(chunk.good)
    dropped = [asdict(one) for one in counter.result()]
    facts = {"num_kept": num_kept, "num_tokens": num_tokens, "longest": longest, "dropped": dropped}
    writer.facts.update(facts)


def _until(chunks: Iterator[Chunk], max_kept: int | None) -> Iterator[Chunk]:
    """The chunks up to the row that is the last one to be kept."""
    for chunk in chunks:
        places = np.flatnonzero(chunk.good)
        if max_kept is not None and len(places) >= max_kept:
            yield chunk.first(int(places[max_kept - 1]) + 1)
            return
        yield chunk
        if max_kept is not None:
            max_kept -= len(places)


class KeptRows:
    """The rows that are kept, by their number among them."""

    def __init__(self, arrays: Arrays) -> None:
        """`arrays` are those of `find_kept`."""
        facts = arrays.facts
        self._arrays = arrays
        self.num_kept, self.num_tokens = int(facts["num_kept"]), int(facts["num_tokens"])
        self.longest: tuple[int, int] = (facts["longest"][0], facts["longest"][1])
        """The row with the longest sequence of those looked at, and its tokens."""
        self.dropped = tuple(Dropped(**one) for one in facts["dropped"])

    def rows(self, numbers: LongArray) -> LongArray:
        """The rows of the table with these numbers among the kept ones."""
        if _KEPT in self._arrays:
            rows: LongArray = self._arrays[_KEPT][numbers]
            return rows
        before = self._arrays[_BEFORE]
        return numbers + np.searchsorted(before, numbers, "right") if len(before) else numbers

    def num_before(self, rows: LongArray) -> LongArray:
        """How many rows are kept of those before these rows of the table."""
        if _KEPT in self._arrays:
            return np.searchsorted(self._arrays[_KEPT], rows)
        before = self._arrays[_BEFORE]
        left_out = before + np.arange(len(before))
        return np.asarray(np.minimum(rows - np.searchsorted(left_out, rows), self.num_kept))
