"""The stream of translations: one draw is a pair of sentences, in a fixed or a shuffled order.

The order is drawn here, once per pair, so that every objective reading the pair (TLM's
concatenation, momentum contrast's two encoders) sees the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.batching.streams.base import Longest, Part, StreamConfig
from isoglot.corpus.readers import Kind
from isoglot.types import Pair

if TYPE_CHECKING:
    from isoglot.corpus import Corpus, Table
    from isoglot.corpus.heldout import Split
    from isoglot.types import FloatArray, IntArray, LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelStream(StreamConfig):
    """Sentence pairs from sources of kind `pairs`."""

    kind: ClassVar[str] = "parallel"
    reads: ClassVar[Kind] = "pairs"

    order: Literal["fixed", "shuffled"] = "fixed"
    """`shuffled` swaps the two sides of half the pairs."""
    least: int = 1
    """Pairs with a side of fewer tokens are left out."""

    @override
    def open(
        self, corpus: Corpus, *, split: Split, longest: Longest, row_length: int
    ) -> tuple[Part, ...]:
        parts = []
        for source, language in self.selected(corpus):
            table = corpus.table(source, language, split)
            if table.num_rows:
                first, second = (corpus.languages.index(code) for code in language.split("-"))
                part = PairPart(
                    source, language, table, (first, second), shuffled=self.order == "shuffled"
                )
                part.keep(longest, self, row_length)
                if part.num_examples:
                    parts.append(part)
        return tuple(parts)


class PairPart(Part):
    """The pairs of one (source, language pair)."""

    def __init__(
        self, source: str, language: str, table: Table, ids: tuple[int, int], *, shuffled: bool
    ) -> None:
        self.source, self.language, self.table = source, language, table
        self.language_ids, self.shuffled = ids, shuffled
        self.num_examples, self.num_dropped = table.num_rows, 0
        self.rows: LongArray | None = None
        self.num_tokens = int(table.lengths("first").sum() + table.lengths("second").sum())

    def keep(self, longest: Longest, config: ParallelStream, row_length: int) -> None:
        """Leave out the pairs that are too long for a row, or too short."""
        everything = np.arange(self.table.num_rows)
        sizes = self.sizes(everything, np.ones(len(everything)))
        lengths = longest(sizes)
        fit = lengths <= row_length
        kept = np.flatnonzero(fit & (sizes.min(axis=1) >= config.least))
        self.num_examples = len(kept)
        self.num_dropped = self.table.num_rows - len(kept)
        if not fit.all():
            worst = int(np.argmax(lengths))
            config.refuse(self, worst, int(lengths[worst]), row_length)
        if self.num_dropped:
            self.rows = kept

    @override
    def sizes(self, indices: LongArray, chances: FloatArray) -> IntArray:
        rows = indices if self.rows is None else self.rows[indices]
        sides = np.stack(
            [self.table.lengths("first", rows), self.table.lengths("second", rows)], axis=1
        )
        return np.where((self.shuffled & (chances < 0.5))[:, None], sides[:, ::-1], sides)

    @override
    def example(self, index: int, chance: float) -> Pair:
        row = index if self.rows is None else int(self.rows[index])
        sides = [self.table.ids("first", row), self.table.ids("second", row)]
        languages = list(self.language_ids)
        if self.shuffled and chance < 0.5:
            sides.reverse()
            languages.reverse()
        return Pair(
            first=sides[0],
            second=sides[1],
            first_language=languages[0],
            second_language=languages[1],
        )

    @override
    def where(self, index: int) -> str:
        row = index if self.rows is None else int(self.rows[index])
        file, inside = self.table.where(row)
        return f"{file}, row {inside}"
