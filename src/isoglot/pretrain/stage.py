"""What the training loop is told of a stage, and what it tells of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch

from isoglot.pretrain.optim import OptimizerConfig
from isoglot.pretrain.trainee import Trainee
from isoglot.types import Cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class LossConfig:
    """How the objectives' losses are joined."""

    weighting: Literal["mean", "sites"] = "mean"
    """`mean`: each objective's mean loss has its weight; `sites`: each predicted thing has."""
    not_finite: Literal["stop", "skip"] = "stop"
    """On a loss that is not finite: stop and write the batch out, or skip the update."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """What the loop needs to know to run one stage."""

    trainee: Trainee
    """The module itself."""
    wrapped: torch.nn.Module
    """The same, wrapped for the processes (DDP)."""
    optimizer: torch.optim.Optimizer
    optimizer_config: OptimizerConfig
    loss: LossConfig
    weights: dict[str, float]
    """Weight of each objective."""
    weights_at: Callable[[int], dict[str, float]] = field(default=lambda _: {})
    """Weights that are others at a step."""
    steps: int
    seed: int
    number: int = 0
    dump: Path | None = None
    """Where a batch with a loss that is not finite is written."""
    stopping: Callable[[], bool] = field(default=lambda: False)
    """Was this process asked to stop?"""
    looks: Callable[[int], bool] = field(default=lambda _: True)
    """Does whoever takes the steps look at the weights after this one? Then the next one waits."""


@dataclass(slots=True, kw_only=True)
class Step:
    """One optimizer step that has been taken."""

    step: int
    """Steps taken in this stage, this one included."""
    losses: dict[str, float]
    """Mean loss of each objective."""
    metrics: dict[str, float]
    """Means of the objectives' other sums: `mlm/accuracy`, ..."""
    counts: dict[str, int]
    """What each mean is over."""
    learning_rate: float
    gradient_norm: float
    num_tokens: int
    """Tokens of the main rows in this step, over all processes; no padding, no side rows."""
    seconds: float
    skipped: bool
    """The update was left out because something was not finite."""
    cursor: Cursor
    """Where the data goes on."""
