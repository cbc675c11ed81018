"""What an objective is: one file with two halves.

The data half is a frozen dataclass of settings: it makes sequences of an example, all randomness
from the generator it is handed, and tells their lengths from the lengths of the examples. It knows
no model and runs in loader workers. The model half is a module: from the encoded rows to a sum of
losses and a count; one place (the loop) divides, over micro-batches and processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from isoglot.models.encoder import Encoder, States
from isoglot.models.seq2seq import Seq2Seq
from isoglot.types import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus import Corpus, Progress
    from isoglot.models.writing import WritingConfig, Written
    from isoglot.types import Example, IntArray, Rows, Sequence, Vocabulary


@dataclass(slots=True, kw_only=True)
class LossSum:
    """The loss of one objective over one micro-batch: a sum, never a mean."""

    total: Tensor
    """The loop divides it by the count of the whole step (`Batch.counts`)."""
    metrics: dict[str, Tensor] = field(default_factory=dict)
    """Sums over the same things, divided by the same count (accuracy, ...)."""
    ratios: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Means over something else: (a sum, its own count)."""


@dataclass(slots=True, kw_only=True)
class Encoded:
    """What one objective gets back from the pass."""

    batch: Batch
    name: str
    states: Tensor
    """(B, L, D) states of the main rows: final ones, or of the layer that the module reads."""
    losses: Tensor
    """Cross-entropy at this objective's prediction sites."""
    correct: Tensor
    """1 where the most likely token is the target, at the same sites."""


@dataclass(frozen=True, slots=True)
class Inference:
    """The encoder being trained, as a `before_pass` may use it: no gradient, no dropout."""

    encoder: Encoder
    seq2seq: Seq2Seq | None = None
    """The encoder-decoder that the encoder belongs to, where it belongs to one."""

    def states(self, rows: Rows) -> States:
        """The states of some rows."""
        with torch.no_grad(), _evaluating(self.encoder):
            states: States = self.encoder(rows)
            return states

    def logits(self, states: States, positions: Tensor) -> Iterator[Tensor]:
        """The LM head's logits (n, V) at flat indices, a chunk of sites at a time."""
        for some in positions.split(self.encoder.settings.head.chunk):
            with torch.no_grad(), _evaluating(self.encoder):
                logits = self.encoder.logits_at(states, some)
            yield logits

    def write(self, rows: Rows, languages: Tensor, settings: WritingConfig) -> Written:
        """What the decoder writes when it reads some padded rows, in a language for each."""
        assert self.seq2seq is not None, "only encoder-decoders write"
        with torch.no_grad(), _evaluating(self.seq2seq):
            return self.seq2seq.write(rows, languages, settings)


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)


class ObjectiveModule(nn.Module, ABC):
    """The model half. Heads, queues and momentum encoders are its parameters and buffers."""

    layer: int | None = None
    """The layer whose states its loss reads (0: the embeddings); none: the last."""
    smoothing: float = 0.0
    """Label smoothing of what it predicts with a decoder, in training."""

    def begin(self) -> None:
        """Before the first step of a stage that trains it and follows none that did; or nothing."""

    def wanting(self) -> int:
        """How many things it wants to see (`fill`) before its first step; usually none.

        The same on every process.
        """
        return 0

    def fill(self, name: str, batch: Batch, inference: Inference) -> None:
        """Before its first step, take what it wants from a batch that is not trained on.

        Processes come to it together, each with a micro-batch of its own.
        """

    def before_pass(self, name: str, batch: Batch, inference: Inference) -> None:
        """A pass of its own without gradient, before the main one (side rows); usually none.

        `name` is the objective's name in the recipe, under which the batch holds what is its own.
        """

    @abstractmethod
    def loss(self, encoded: Encoded) -> LossSum:
        """The sum of losses over this objective's sites."""

    def after_step(self, *, taken: bool) -> None:
        """Once per step: move momentum weights, push queues; usually nothing.

        `taken` is False where the optimizer's update was left out: nothing may move then.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(ABC):
    """The data half and the settings every objective has."""

    name: ClassVar[str]
    line: ClassVar[str]
    """One line for tables: what it predicts from what."""
    reads: ClassVar[tuple[str, ...]]
    """The kinds of stream it can read."""
    paper: ClassVar[str]
    num_side: ClassVar[int] = 0
    """How many of its sequences, the last ones, are side rows for its `before_pass`."""
    counts: ClassVar[str | None] = None
    """What its loss is a mean over: tokens to predict, or, if named, its sites of that name."""
    host_sites: ClassVar[tuple[str, ...]] = ()
    """Names of its sites that are places in its host's sequence, not in its own."""
    decodes: ClassVar[bool] = False
    """Are its first two sequences what an encoder reads and what a decoder writes?"""

    weight: float = 1.0
    """Weight of its loss in the sum."""

    def hosts(self) -> tuple[str, ...]:
        """The objectives on whose sequences it rides; none: it builds its own.

        It then adds nothing to the main rows, and its loss is a mean over their tokens to predict,
        or over its own sites (`counts`).
        """
        return ()

    def wants(self, language: str) -> bool:  # noqa: ARG002
        """Does it make anything of examples of this language (or pair of languages)?"""
        return True

    def prepared(self, corpus: Corpus, progress: Progress | None = None) -> Objective:  # noqa: ARG002
        """Make what it needs of a corpus beside its text, if it is not there; usually nothing.

        Gives the objective that knows where it is. Of several processes, one goes first.
        """
        return self

    @abstractmethod
    def lengths(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n, m) the most tokens of the sequences it makes of each."""

    def reach(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n,) how many positions its sequences reach over."""
        return np.asarray(self.lengths(sizes).max(axis=1), np.int32)

    @abstractmethod
    def max_targets(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n,) the most prediction sites it makes of each."""

    @abstractmethod
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        """The sequences of one example."""

    def ride(
        self,
        hosted: tuple[Sequence, ...],  # noqa: ARG002
        vocabulary: Vocabulary,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> tuple[Sequence, ...]:
        """The side rows of an example of which its hosts have made these sequences."""
        return ()

    def build_beside(
        self,
        example: Example,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
        longest: int,  # noqa: ARG002
    ) -> tuple[Sequence, ...]:
        """The same in a padded batch whose longest source has so many tokens; rarely different."""
        return self.build(example, vocabulary, rng)

    def weight_at(self, step: int) -> float:  # noqa: ARG002
        """Its weight at a step of a stage; mostly always the same."""
        return self.weight

    @abstractmethod
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        """The model half, for an encoder and a corpus."""


class Prediction(ObjectiveModule):
    """The model half of every objective that only predicts tokens: the LM head's cross-entropy."""

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        return LossSum(
            total=encoded.losses.sum(),
            metrics={"accuracy": encoded.correct.sum()},
        )
