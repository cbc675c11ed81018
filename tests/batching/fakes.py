"""Streams without files: parts of given sizes, and data halves that only lay tokens out."""

from __future__ import annotations

from collections.abc import Sequence as List
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from isoglot.batching.mixture import Mixture, OpenStream
from isoglot.batching.streams import Part, SequenceMaker, TextStream
from isoglot.types import (
    IGNORE,
    Example,
    FloatArray,
    IntArray,
    LongArray,
    Sequence,
    Text,
    Vocabulary,
)

VOCABULARY = Vocabulary(
    size=1000,
    cls=0,
    sep=2,
    pad=1,
    mask=999,
    special=(0, 1, 2, 3, 999),
    word_starts=np.arange(1000) % 3 == 0,
)


class FakePart(Part):
    """Example i has `sizes[i]` tokens, all of them 10 + i."""

    def __init__(self, language: str, sizes: List[int], source: str = "fake") -> None:
        self.source, self.language = source, language
        self.lengths = np.array(sizes, np.int32)
        self.num_examples, self.num_tokens = len(sizes), int(sum(sizes))
        self.num_dropped = 0

    @override
    def sizes(self, indices: LongArray, chances: FloatArray) -> IntArray:
        return self.lengths[indices][:, None]

    @override
    def example(self, index: int, chance: float) -> Text:
        ids = np.full(self.lengths[index], 10 + index, np.int32)
        return Text(ids=ids, sentences=np.zeros_like(ids), language=0)

    @override
    def where(self, index: int) -> str:
        return f"{self.name}, row {index}"


@dataclass(frozen=True)
class Plain:
    """Makes `copies` sequences of each example, the last `num_side` of them side rows."""

    copies: int = 1
    num_side: ClassVar[int] = 0
    counts: ClassVar[str | None] = None
    host_sites: ClassVar[tuple[str, ...]] = ()
    decodes: ClassVar[bool] = False

    def hosts(self) -> tuple[str, ...]:
        return ()

    def wants(self, language: str) -> bool:
        return True

    def ride(
        self, hosted: tuple[Sequence, ...], vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        raise NotImplementedError

    def lengths(self, sizes: IntArray) -> IntArray:
        return np.repeat(sizes, self.copies, axis=1)

    def reach(self, sizes: IntArray) -> IntArray:
        return np.asarray(sizes.max(axis=1), np.int32)

    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.full(len(sizes), self.copies, np.int32)

    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        made = []
        for number in range(self.copies):
            targets = np.full(len(example.ids), IGNORE, np.int32)
            if number < self.copies - self.num_side:
                targets[0] = int(rng.integers(10, 900))
            made.append(
                Sequence(
                    ids=example.ids,
                    positions=np.arange(len(example.ids), dtype=np.int32),
                    languages=np.zeros_like(example.ids),
                    sentences=example.sentences,
                    parts=np.zeros_like(example.ids),
                    targets=targets,
                    sites={"first": np.zeros(1, np.int64)},
                )
            )
        return tuple(made)

    def build_beside(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator, longest: int
    ) -> tuple[Sequence, ...]:
        return self.build(example, vocabulary, rng)


@dataclass(frozen=True)
class Sided(Plain):
    """Two sequences, the second in side rows."""

    copies: int = 2
    num_side: ClassVar[int] = 1


def open_stream(
    parts: List[Part], *makers: SequenceMaker, share: float = 1.0, **settings: object
) -> OpenStream:
    names = tuple(f"m{i}" for i in range(len(makers)))
    config = TextStream(objectives=names, share=share, **settings)  # type: ignore[arg-type]
    return OpenStream(
        config=config, parts=tuple(parts), makers=tuple(zip(names, makers, strict=True))
    )


def mixture(*streams: OpenStream, seed: int = 0, stage: int = 0) -> Mixture:
    return Mixture(streams, seed=seed, stage=stage)
