"""Denoising: the decoder reconstructs a sentence from a noisy version of it.

Reads a draw of the text stream (one sentence each). A language model objective beside
back-translation: XLM (Conneau and Lample, 2019), after Lample et al. (2018). Words move at most
three places, each is dropped with probability 0.1, and a kept one is blanked ([MASK]) with 0.1:

    encoder input      <en> b a [M] d </s>
    decoder targets    a b c d e </s>

Its weight falls from 1 to 0.1 at step 100,000 and to 0 at step 300,000 of its stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.errors import require
from isoglot.objectives.seq2seq import Seq2SeqObjective, build_source, build_target
from isoglot.ranges import Probability, Range
from isoglot.types import IntArray, Sequence, Text

if TYPE_CHECKING:
    from isoglot.types import Example, Rng, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Denoise(Seq2SeqObjective):
    """Settings of denoising."""

    name: ClassVar[str] = "denoise"
    summary: ClassVar[str] = "reconstruct a sentence whose words were shuffled, dropped and blanked"
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "XLM; MLM-GC A.2.2"

    max_shuffle_distance: Annotated[float, Range(0, 1e6)] = 3.0
    """How far a word may move, in words; 0 keeps the order."""
    word_dropout_prob: Annotated[float, Range(0, 1, below=True)] = 0.1
    """Probability that a word is dropped; at least one stays."""
    word_blanking_prob: Probability = 0.1
    """Probability that a word becomes mask tokens."""
    weight_schedule: tuple[
        tuple[Annotated[int, Range(0, 10**9)], Annotated[float, Range(0, 1e6)]], ...
    ] = ((0, 1.0), (100_000, 0.1), (300_000, 0.0))
    """[step of the stage, factor of its weight], interpolated linearly."""

    @override
    def __post_init__(self) -> None:
        Seq2SeqObjective.__post_init__(self)
        steps = [step for step, _ in self.weight_schedule]
        rising = len(steps) > 0 and all(a < b for a, b in pairwise(steps))
        require(rising, "denoise.weight_schedule needs [step, factor] pairs by step")

    @override
    def weight_at(self, step: int) -> float:
        steps, factors = zip(*self.weight_schedule, strict=True)
        return self.weight * float(np.interp(step, steps, factors))

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        noisy = self.add_noise(example.ids, vocabulary, rng)
        return (
            build_source(noisy, example.language, vocabulary),
            build_target(example.ids, example.language, vocabulary),
        )

    def add_noise(self, ids: IntArray, vocabulary: Vocabulary, rng: Rng) -> IntArray:
        """A text with shuffled, dropped and blanked words."""
        starts = vocabulary.word_starts[ids].copy()
        starts[0] = True
        words = np.split(ids, np.flatnonzero(starts)[1:])
        order = np.argsort(
            np.arange(len(words)) + rng.uniform(0, self.max_shuffle_distance, len(words))
        )
        kept = rng.random(len(words)) >= self.word_dropout_prob
        if not kept.any():
            kept[rng.integers(len(words))] = True
        blanked = rng.random(len(words)) < self.word_blanking_prob
        noisy = [
            np.full(len(words[word]), vocabulary.mask) if blanked[word] else words[word]
            for word in order
            if kept[word]
        ]
        return np.concatenate(noisy).astype(np.int32)
