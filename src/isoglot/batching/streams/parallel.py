"""The parallel stream: one draw is a sentence and its translation, in fixed or shuffled order.

The order is drawn here, once per pair, so that every objective of the stream (TLM's concatenation,
the two encoders of momentum contrast) sees the same one. With `mixup` a draw concatenates two
pairs, each side in an order of its own (InfoXLM's mixup contrast):

    (a, x) and (b, y)  ->  (a b, y x)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.batching.dropped import Limit
from isoglot.batching.streams.base import (
    LanguageSlice,
    SequenceLength,
    StreamConfig,
    key_of_lengths,
)
from isoglot.batching.streams.kept_rows import Chunk, KeptRows, find_kept
from isoglot.ranges import Range
from isoglot.types import Pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus import Corpus, Table
    from isoglot.corpus.storage.array_file import ArrayWriter
    from isoglot.corpus.storage.shards import Split
    from isoglot.types import BoolArray, FloatArray, IntArray, LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelStream(StreamConfig):
    """Sentence pairs from sources of kind `pairs`."""

    kind: ClassVar[str] = "parallel"
    reads: ClassVar[str] = "pairs"

    order: Literal["fixed", "shuffled"] = "fixed"
    """`shuffled` swaps the two sides of half the pairs."""
    min_tokens: Annotated[int, Range(0, 2**17)] = 1
    """Pairs with a side of fewer tokens are dropped."""
    max_tokens: Annotated[int | None, Range(1, 2**17)] = None
    """Pairs with more tokens, both sides together, are dropped; none: no limit."""
    max_pairs: Annotated[int | None, Range(1, 10**12)] = None
    """Take only the first so many pairs of each language pair that are not dropped; none: all."""
    mixup: bool = False
    """Concatenate two pairs, each side in an order of its own; a pair must fit half a row."""

    @override
    def open(
        self, corpus: Corpus, *, split: Split, sequence_length: SequenceLength, row_length: int
    ) -> tuple[LanguageSlice, ...]:
        slices = []
        taken: Counter[str] = Counter()
        for source, language in self.selected(corpus):
            table = corpus.table(source, language, split)
            wanted = None if self.max_pairs is None else self.max_pairs - taken[language]
            if table.num_rows and wanted != 0:
                first, second = (corpus.languages.index(code) for code in language.split("-"))
                pairs = PairSlice(source, language, table, (first, second), self)
                pairs.choose(corpus, split, sequence_length, row_length, wanted)
                taken[language] += pairs.num_examples
                slices.append(pairs)
        return tuple(slices)


class PairSlice(LanguageSlice):
    """The pairs of one (source, language pair)."""

    def __init__(
        self,
        source: str,
        language: str,
        table: Table,
        language_ids: tuple[int, int],
        config: ParallelStream,
    ) -> None:
        self.source, self.language, self.table = source, language, table
        self.language_ids, self.config = language_ids, config
        self.num_examples = table.num_rows
        self.kept: KeptRows | None = None

    def choose(
        self,
        corpus: Corpus,
        split: Split,
        sequence_length: SequenceLength,
        row_length: int,
        max_pairs: int | None,
    ) -> None:
        """Find the first `max_pairs` pairs that are neither too long nor too short, or map them."""
        config = self.config
        self._rows = corpus.rows(self.source, self.language, split)

        def chunks() -> Iterator[Chunk]:
            for part in self._rows.chunks():
                sizes = self._rows.sizes(part)
                # two pairs that each fit into half a row fit into a row together
                lengths = sequence_length(sizes * 2 if config.mixup else sizes)
                yield Chunk(self._limits(sizes, lengths, row_length), sizes.sum(axis=1), lengths)

        def build(writer: ArrayWriter) -> None:
            find_kept(writer, chunks, max_pairs)

        name = f"{self.source}/{self.language}/{split}-pairs"
        limits = (config.min_tokens, config.max_tokens, max_pairs, config.mixup, row_length)
        settings = (*limits, key_of_lengths(sequence_length, 2, row_length))
        kept = KeptRows(corpus.index(name, settings, build, num_rows=len(self._rows)))
        self.num_examples, self.num_tokens = kept.num_kept, kept.num_tokens
        self.dropped = kept.dropped
        row, length = kept.longest
        if length > row_length:
            config.check_overlong(self, row, length, row_length)
        self.kept = kept

    def _limits(self, sizes: IntArray, lengths: IntArray, row_length: int) -> list[Limit]:
        """What pairs are dropped by, the row first."""
        config, both = self.config, sizes.sum(axis=1)
        reason = f"do not fit a row of {row_length} tokens"
        if config.mixup:
            reason = f"do not fit half a row of {row_length} tokens"
        limits = [Limit(lengths <= row_length, reason, "batch.row_length", lengths)]
        if config.max_tokens is not None:
            reason = f"have more than {config.max_tokens} tokens in both sides"
            limits.append(Limit(both <= config.max_tokens, reason, "the stream's max_tokens", both))
        reason = f"have a side of fewer than {config.min_tokens} tokens"
        good = sizes.min(axis=1) >= config.min_tokens
        limits.append(Limit(good, reason, "the stream's min_tokens"))
        return limits

    @override
    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        chosen = _PairChoices(self.config, self.num_examples, indices, uniforms)
        sides = self._sides(indices)
        if self.config.mixup:
            sides = sides + self._sides(chosen.partners)
        return np.where(chosen.swapped[:, None], sides[:, ::-1], sides)

    @override
    def example(self, index: int, uniform: float) -> Pair:
        chosen = _PairChoices(
            self.config, self.num_examples, np.array([index]), np.array([uniform])
        )
        sides = self._read(index)
        if self.config.mixup:
            others = self._read(int(chosen.partners[0]))
            sides = [
                np.concatenate([other, side] if partner_first else [side, other])
                for side, other, partner_first in zip(
                    sides, others, chosen.partner_first[0], strict=True
                )
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

    @override
    def block_ends(self) -> LongArray:
        ends = self.table.starts[1:]
        return ends if self.kept is None else self.kept.num_before(ends)

    def _row(self, indices: LongArray) -> LongArray:
        return indices if self.kept is None else self.kept.rows(indices)

    def _sides(self, indices: LongArray) -> IntArray:
        return self._rows.sizes(self._row(indices))

    def _read(self, index: int) -> list[IntArray]:
        row = int(self._row(np.array([index]))[0])
        return [self.table.ids(side, row) for side in ("first", "second")]


class _PairChoices:
    """The random choices of draws; each uses up some bits of the draw's uniform number."""

    swapped: BoolArray
    """(n,) are the two sides swapped?"""
    partner_first: BoolArray
    """(n, 2) mixup: does the second pair come first on this side?"""
    partners: LongArray
    """(n,) mixup: the second pair, different from the first where there are two."""

    def __init__(
        self, config: ParallelStream, num_examples: int, indices: LongArray, uniforms: FloatArray
    ) -> None:
        rest = uniforms
        if config.order == "shuffled":
            self.swapped, rest = rest < 0.5, rest * 2 % 1
        else:
            self.swapped = np.zeros(len(indices), np.bool_)
        if config.mixup:
            first, rest = rest < 0.5, rest * 2 % 1
            second, rest = rest < 0.5, rest * 2 % 1
            self.partner_first = np.stack([first, second], axis=1)
            others = max(num_examples - 1, 1)
            self.partners = (indices + 1 + (rest * others).astype(np.int64)) % num_examples
