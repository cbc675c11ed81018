"""Streams without files: slices of given sizes, and objectives that copy tokens."""

from __future__ import annotations

from collections.abc import Sequence as List
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from isoglot.batching.mixture import Mixture, OpenStream
from isoglot.batching.streams import LanguageSlice, TextStream
from isoglot.corpus import Corpus
from isoglot.models.encoder import Encoder
from isoglot.objectives.base import Objective, ObjectiveModule
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


class FakeSlice(LanguageSlice):
    """Example i has `sizes[i]` tokens, all of them 10 + i."""

    def __init__(self, language: str, sizes: List[int], source: str = "fake") -> None:
        self.source, self.language = source, language
        self.lengths = np.array(sizes, np.int32)
        self.num_examples, self.num_tokens = len(sizes), int(sum(sizes))

    @override
    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        return self.lengths[indices][:, None]

    @override
    def example(self, index: int, uniform: float) -> Text:
        ids = np.full(self.lengths[index], 10 + index, np.int32)
        return Text(ids=ids, sentences=np.zeros_like(ids), language=0)

    @override
    def where(self, index: int) -> str:
        return f"{self.name}, row {index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Objective):
    """Builds `copies` sequences of each example, the last `num_aux_sequences` auxiliary."""

    copies: int = 1

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return np.repeat(sizes, self.copies, axis=1)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.full(len(sizes), self.copies, np.int32)

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        raise NotImplementedError

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        made = []
        for number in range(self.copies):
            targets = np.full(len(example.ids), IGNORE, np.int32)
            if number < self.copies - self.num_aux_sequences:
                targets[0] = int(rng.integers(10, 900))
            made.append(
                Sequence(
                    ids=example.ids,
                    positions=np.arange(len(example.ids), dtype=np.int32),
                    languages=np.zeros_like(example.ids),
                    sentences=example.sentences,
                    roles=np.zeros_like(example.ids),
                    targets=targets,
                    markers={"first": np.zeros(1, np.int64)},
                )
            )
        return tuple(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithAux(Plain):
    """Two sequences, the second in auxiliary rows."""

    copies: int = 2
    num_aux_sequences: ClassVar[int] = 1


def open_stream(
    slices: List[LanguageSlice], *objectives: Objective, share: float = 1.0, **settings: object
) -> OpenStream:
    names = tuple(f"m{i}" for i in range(len(objectives)))
    config = TextStream(objectives=names, share=share, **settings)  # type: ignore[arg-type]
    return OpenStream(
        config=config,
        slices=tuple(slices),
        objectives=tuple(zip(names, objectives, strict=True)),
    )


def mixture(*streams: OpenStream, seed: int = 0, stage: int = 0) -> Mixture:
    return Mixture(streams, seed=seed, stage=stage)
