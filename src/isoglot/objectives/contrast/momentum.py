"""A module's exponential moving average, which encodes keys: θk ← m θk + (1 - m) θq.

Moved once after every optimizer step, in the weights' own precision (float32 in training), without
gradient. A submodule like any other, so checkpoints hold it. MoCo (He et al., 2020) Eq. 2; PPA Eq.
1. The momentum may begin lower than it ends: a copy of a module that changes fast at first follows
it more closely then.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn
from typing_extensions import override

from isoglot.errors import require

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentumConfig:
    """How slowly keys follow."""

    value: float = 0.999
    """The momentum m, from the end of its schedule on."""
    schedule: Literal["constant", "linear", "exponential"] = "constant"
    """`linear` and `exponential` (in 1 - m) go from `first` to `value` within `moves` steps."""
    first: float = 0.9
    """The momentum of the first step, if it is not constant."""
    moves: int = 1000
    """Steps of the schedule."""

    def __post_init__(self) -> None:
        for name, value in (("value", self.value), ("first", self.first)):
            require(0 <= value < 1, f"momentum.{name} must be from 0 to below 1")
        require(self.moves >= 1, "momentum.moves must be 1 or more")

    def at(self, move: int) -> float:
        """The momentum of a move, counted from 0."""
        done = min(move / self.moves, 1.0)
        if self.schedule == "linear":
            return self.first + (self.value - self.first) * done
        if self.schedule == "exponential":
            return float(1 - (1 - self.first) ** (1 - done) * (1 - self.value) ** done)
        return self.value


class Follower(nn.Module):
    """A frozen copy of a module that follows it; called as the module itself is."""

    moves: Tensor

    def __init__(self, original: nn.Module, settings: MomentumConfig) -> None:
        super().__init__()
        self.settings = settings
        self.copy = copy.deepcopy(original).requires_grad_(requires_grad=False)
        # in a tuple, so that the original is not a submodule: it has its own place in checkpoints
        self._original = (original,)
        self.register_buffer("moves", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def begin(self) -> None:
        """Take the original's weights as they are."""
        for own, followed in zip(*self._weights(), strict=True):
            own.copy_(followed)

    @torch.no_grad()
    def move(self) -> None:
        """One step of the average."""
        # reading the counter makes the host wait for the device
        constant = self.settings.schedule == "constant"
        momentum = self.settings.at(0 if constant else int(self.moves))
        own, followed = self._weights()
        if own:
            get_ema_multi_avg_fn(momentum)(own, followed, self.moves)
        self.moves += 1

    def _weights(self) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        (original,) = self._original
        return list(self.copy.parameters()), list(original.parameters())

    @override
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return self.copy(*args, **kwargs)
