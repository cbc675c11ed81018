"""What an objective is: one file with two halves.

The data half is a frozen dataclass of settings: it makes sequences of an example, all randomness
from the generator it is handed, and tells their lengths from the lengths of the examples. It knows
no model and runs in loader workers. The model half is a module: from the encoded rows to a sum of
losses and a count; one place (the loop) divides, over micro-batches and processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor, nn
from typing_extensions import override

from isoglot.types import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, IntArray, Rows, Sequence, Vocabulary


@dataclass(slots=True, kw_only=True)
class LossSum:
    """The loss of one objective over one micro-batch: a sum, never a mean."""

    total: Tensor
    """The loop divides it by the count of the whole step (`Batch.counts`)."""
    metrics: dict[str, Tensor] = field(default_factory=dict)
    """Sums over the same things, divided by the same count (accuracy, ...)."""


@dataclass(slots=True, kw_only=True)
class Encoded:
    """What one objective gets back from the pass."""

    batch: Batch
    name: str
    states: Tensor
    """(B, L, D) final hidden states of the main rows."""
    losses: Tensor
    """Cross-entropy at this objective's prediction sites."""
    correct: Tensor
    """1 where the most likely token is the target, at the same sites."""

    def at(self, site: str) -> Tensor:
        """(n, D) states at the objective's named sites; none in a batch without them."""
        states = self.states.flatten(0, 1)
        places = self.batch.sites.get(self.name, {}).get(site)
        return states[:0] if places is None else states[places]


class ObjectiveModule(nn.Module, ABC):
    """The model half. Heads, queues and momentum encoders are its parameters and buffers."""

    def before_pass(self, batch: Batch, encode: Callable[[Rows], Tensor]) -> None:
        """A pass of its own without gradient, before the main one (side rows); usually none."""

    @abstractmethod
    def loss(self, encoded: Encoded) -> LossSum:
        """The sum of losses over this objective's sites."""

    def after_step(self) -> None:
        """Once per optimizer step: move momentum weights, push queues; usually nothing."""


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

    weight: float = 1.0
    """Weight of its loss in the sum."""

    @abstractmethod
    def lengths(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n, m) lengths of the sequences it makes of each."""

    @abstractmethod
    def max_targets(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n,) the most prediction sites it makes of each."""

    @abstractmethod
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        """The sequences of one example."""

    @abstractmethod
    def module(self, encoder: Encoder) -> ObjectiveModule:
        """The model half, for an encoder."""


class Prediction(ObjectiveModule):
    """The model half of every objective that only predicts tokens: the LM head's cross-entropy."""

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        return LossSum(
            total=encoded.losses.sum(),
            metrics={"accuracy": encoded.correct.sum()},
        )
