"""The stream of translations: one draw is a pair of sentences, in a fixed or a shuffled order.

The order is drawn here, once per pair, so that every objective reading the pair (TLM's
concatenation, momentum contrast's two encoders) sees the same one. With `mix` a draw is two pairs
run together (InfoXLM's mix-up contrast), each side in an order of its own:

    (a, x) and (b, y)  ->  (a b, y x)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.batching.streams.base import Longest, Part, StreamConfig
from isoglot.errors import require
from isoglot.types import Pair

if TYPE_CHECKING:
    from isoglot.corpus import Corpus, Table
    from isoglot.corpus.heldout import Split
    from isoglot.types import BoolArray, FloatArray, IntArray, LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelStream(StreamConfig):
    """Sentence pairs from sources of kind `pairs`."""

    kind: ClassVar[str] = "parallel"
    reads: ClassVar[str] = "pairs"

    order: Literal["fixed", "shuffled"] = "fixed"
    """`shuffled` swaps the two sides of half the pairs."""
    least: int = 1
    """Pairs with a side of fewer tokens are left out."""
    most: int | None = None
    """Pairs with more tokens, both sides together, are left out; none leaves none out."""
    first: int | None = None
    """Take only so many pairs of each language, the first that are not left out; none: all."""
    mix: bool = False
    """Run two pairs together, each side in an order of its own; half a row holds the longest."""

    @override
    def __post_init__(self) -> None:
        StreamConfig.__post_init__(self)
        require(self.first is None or self.first >= 1, "first must be 1 or more, or none")

    @override
    def open(
        self, corpus: Corpus, *, split: Split, longest: Longest, row_length: int
    ) -> tuple[Part, ...]:
        parts = []
        taken: Counter[str] = Counter()
        for source, language in self.selected(corpus):
            table = corpus.table(source, language, split)
            wanted = None if self.first is None else self.first - taken[language]
            if table.num_rows and wanted != 0:
                first, second = (corpus.languages.index(code) for code in language.split("-"))
                part = PairPart(source, language, table, (first, second), self)
                part.keep(longest, row_length, wanted)
                taken[language] += part.num_examples
                if part.num_examples:
                    parts.append(part)
        return tuple(parts)


class PairPart(Part):
    """The pairs of one (source, language pair)."""

    def __init__(
        self,
        source: str,
        language: str,
        table: Table,
        ids: tuple[int, int],
        config: ParallelStream,
    ) -> None:
        self.source, self.language, self.table = source, language, table
        self.language_ids, self.config = ids, config
        self.num_examples, self.num_dropped = table.num_rows, 0
        self.rows: LongArray | None = None

    def keep(self, longest: Longest, row_length: int, wanted: int | None) -> None:
        """Leave out the pairs that are too long, or too short, and those after the first wanted."""
        config = self.config
        sizes = self._sides(np.arange(self.table.num_rows))
        # two pairs that each fit into half a row fit into a row together
        lengths = longest(sizes * 2 if config.mix else sizes)
        fit = lengths <= row_length
        good = fit & (sizes.min(axis=1) >= config.least)
        if config.most is not None:
            good &= sizes.sum(axis=1) <= config.most
        kept = np.flatnonzero(good)[:wanted]
        enough = wanted is not None and len(kept) == wanted
        looked_at = int(kept[-1]) + 1 if enough else self.table.num_rows
        self.num_examples, self.num_dropped = len(kept), looked_at - len(kept)
        self.num_tokens = int(sizes[kept].sum(dtype=np.int64))
        if not fit[:looked_at].all():
            worst = int(np.argmax(lengths[:looked_at]))
            config.refuse(self, worst, int(lengths[worst]), row_length)
        if len(kept) < self.table.num_rows:
            self.rows = kept

    @override
    def sizes(self, indices: LongArray, chances: FloatArray) -> IntArray:
        chosen = _Choices(self.config, self.num_examples, indices, chances)
        sides = self._sides(indices)
        if self.config.mix:
            sides = sides + self._sides(chosen.partners)
        return np.where(chosen.swapped[:, None], sides[:, ::-1], sides)

    @override
    def example(self, index: int, chance: float) -> Pair:
        chosen = _Choices(self.config, self.num_examples, np.array([index]), np.array([chance]))
        sides = self._read(index)
        if self.config.mix:
            others = self._read(int(chosen.partners[0]))
            sides = [
                np.concatenate([other, side] if turned else [side, other])
                for side, other, turned in zip(sides, others, chosen.turned[0], strict=True)
            ]
        languages = list(self.language_ids)
        if chosen.swapped[0]:
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
        file, inside = self.table.where(int(self._row(np.array([index]))[0]))
        return f"{file}, row {inside}"

    def _row(self, indices: LongArray) -> LongArray:
        return indices if self.rows is None else self.rows[indices]

    def _sides(self, indices: LongArray) -> IntArray:
        rows = self._row(indices)
        columns = [self.table.lengths(side, rows) for side in ("first", "second")]
        return np.stack(columns, axis=1)

    def _read(self, index: int) -> list[IntArray]:
        row = int(self._row(np.array([index]))[0])
        return [self.table.ids(side, row) for side in ("first", "second")]


class _Choices:
    """What follows from the draws' numbers in [0, 1), of which each choice uses up a part."""

    swapped: BoolArray
    """(n,) do the two sides change places?"""
    turned: BoolArray
    """(n, 2) mixed: does the second pair come first on this side?"""
    partners: LongArray
    """(n,) mixed: the second pair; never the first again, where there is another."""

    def __init__(
        self, config: ParallelStream, num_examples: int, indices: LongArray, chances: FloatArray
    ) -> None:
        rest = chances
        if config.order == "shuffled":
            self.swapped, rest = rest < 0.5, rest * 2 % 1
        else:
            self.swapped = np.zeros(len(indices), np.bool_)
        if config.mix:
            first, rest = rest < 0.5, rest * 2 % 1
            second, rest = rest < 0.5, rest * 2 % 1
            self.turned = np.stack([first, second], axis=1)
            others = max(num_examples - 1, 1)
            self.partners = (indices + 1 + (rest * others).astype(np.int64)) % num_examples
