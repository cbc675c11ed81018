"""An exponential moving average of the trained weights, which is validated and exported.

Averages of the last steps' weights often score better than the last weights, as they cancel the
noise of single steps (Polyak and Juditsky, 1992; Izmailov et al., 2018). After step t of a stage,
from 0:

    average ← d average + (1 - d) weights,   d = min(decay, (1 + t) / (10 + t))

The average begins with the weights at the start of each stage, and the smaller d of the first steps
lets it forget them soon. d is a function of the step, and the average is a buffer of the training
module: checkpoints hold it beside the weights, and both resume exactly.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from isoglot.errors import require
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

_WARMUP = 10
"""The average of the first t steps reaches back over about t / 10 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingConfig:
    """The moving average of the weights."""

    decay: Annotated[float, Range(0, 1, below=True)] = 0.999
    """What is kept of the average in each step: it reaches back over about 1 / (1 - decay)."""

    def __post_init__(self) -> None:
        check_ranges(self)

    def check(self, strategy: str, weights: str) -> None:
        """Refuse what it does not go with: sharded weights, weights in bf16."""
        require(
            strategy == "ddp",
            f"averaging needs whole weights, and distributed.strategy: {strategy} splits them: set "
            "distributed.strategy: ddp, or leave averaging out.",
        )
        require(
            weights == "float32",
            f"averaging needs float32 weights, as memory.weights: {weights} rounds its small steps "
            "away: leave memory.weights out, or averaging.",
        )

    def decay_at(self, step: int) -> float:
        """The decay of a step of a stage, from 0."""
        return min(self.decay, (1 + step) / (_WARMUP + step))

    def describe(self) -> str:
        """A sentence for the model card."""
        return (
            f"exponential moving average of the last stage's steps, decay {self.decay:g}; held-out "
            "scores are its"
        )


class WeightAverage(nn.Module):
    """The average of those weights of a module that are trained, as buffers."""

    def __init__(self, module: nn.Module, config: AveragingConfig) -> None:
        super().__init__()
        self.config = config
        # in a tuple, so that they are no parameters of this module
        self._weights = tuple(
            (name.replace(".", "|"), weight)
            for name, weight in module.named_parameters()
            if weight.requires_grad
        )
        for name, weight in self._weights:
            self.register_buffer(name, weight.detach().clone())

    @torch.no_grad()
    def start(self) -> None:
        """Begin with the present weights: at the start of a stage."""
        for name, weight in self._weights:
            self.get_buffer(name).copy_(weight)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """After a step of a stage, from 0: move the average toward the weights."""
        own = [self.get_buffer(name) for name, _ in self._weights]
        weights = [weight.detach() for _, weight in self._weights]
        get_ema_multi_avg_fn(self.config.decay_at(step))(own, weights, step)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange weights and average in place."""
        for name, weight in self._weights:
            average, kept = self.get_buffer(name), weight.detach().clone()
            weight.copy_(average)
            average.copy_(kept)


@contextmanager
def averaged_weights(average: WeightAverage | None) -> Iterator[None]:
    """Within: the module has its averaged weights, if there is an average."""
    if average is None:
        yield
        return
    average.swap()
    try:
        yield
    finally:
        average.swap()
