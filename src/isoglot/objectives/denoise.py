"""Denoising: the decoder writes a sentence of which the encoder reads a version with noise.

Reads a draw of the text stream (one sentence each). Keeps the model's languages while it learns to
translate: XLM (Conneau and Lample, 2019), after Lample et al. (2018). Words are shuffled, at most
three places far, each is dropped with probability 0.1 and what is left blanked ([MASK]) with 0.1:

    encoder            <en> b a [M] d </s>
    decoder writes     a b c d e </s>

Its weight falls from 1 to 0.1 at step 100,000 and to 0 at step 300,000 of its stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.errors import require
from isoglot.objectives.sides import NUM_EDGES, Decoded, DecodedPrediction, source, target
from isoglot.types import IntArray, Sequence, Text

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.objectives.base import ObjectiveModule
    from isoglot.types import Example, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Denoise(Decoded):
    """Settings of denoising."""

    name: ClassVar[str] = "denoise"
    line: ClassVar[str] = "write a sentence whose words were shuffled, dropped and blanked"
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "XLM; MLM-GC A.2.2"

    window: float = 3.0
    """How far a word may move, in words; 0 leaves them in order."""
    drop: float = 0.1
    """Probability that a word is left out; one at least stays."""
    blank: float = 0.1
    """Probability that a word becomes mask tokens."""
    schedule: tuple[tuple[int, float], ...] = ((0, 1.0), (100_000, 0.1), (300_000, 0.0))
    """Its weight is multiplied by these, at these steps of a stage, and lies between in between."""

    def __post_init__(self) -> None:
        require(self.window >= 0, "denoise.window must not be negative")
        require(0 <= self.drop < 1, "denoise.drop must be at least 0 and below 1")
        require(0 <= self.blank <= 1, "denoise.blank must be between 0 and 1")
        steps = [step for step, _ in self.schedule]
        rising = len(steps) > 0 and all(a < b for a, b in pairwise(steps))
        require(rising, "denoise.schedule needs [step, factor] pairs in the order of the steps")

    @override
    def weight_at(self, step: int) -> float:
        steps, factors = zip(*self.schedule, strict=True)
        return self.weight * float(np.interp(step, steps, factors))

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return np.concatenate([sizes + NUM_EDGES, sizes + 1], axis=1).astype(np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(sizes[:, 0] + 1, np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        noisy = self.with_noise(example.ids, vocabulary, rng)
        return (
            source(noisy, example.language, vocabulary),
            target(example.ids, example.language, vocabulary),
        )

    def with_noise(
        self, ids: IntArray, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> IntArray:
        """A text with noise, word by word."""
        starts = vocabulary.word_starts[ids].copy()
        starts[0] = True
        words = np.split(ids, np.flatnonzero(starts)[1:])
        order = np.argsort(np.arange(len(words)) + rng.uniform(0, self.window, len(words)))
        kept = rng.random(len(words)) >= self.drop
        if not kept.any():
            kept[rng.integers(len(words))] = True
        blanked = rng.random(len(words)) < self.blank
        noisy = [
            np.full(len(words[word]), vocabulary.mask) if blanked[word] else words[word]
            for word in order
            if kept[word]
        ]
        return np.concatenate(noisy).astype(np.int32)

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return DecodedPrediction(self.smoothing)
