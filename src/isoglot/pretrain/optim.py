"""The optimizer and its learning rate: AdamW or LAMB, warm-up, then one of four schedules.

The learning rate is a function of the step alone, so a checkpoint needs no scheduler state.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from isoglot.errors import RecipeError, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch import Tensor, nn


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig:
    """Which optimizer, and how its learning rate goes."""

    name: Literal["adamw", "lamb"] = "adamw"
    """AdamW (fused) or LAMB (from pytorch_optimizer)."""
    learning_rate: float = 2e-4
    """Peak learning rate."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Decay rates of the two moments."""
    eps: float = 1e-6
    """Added to the denominator."""
    weight_decay: float = 0.01
    """Decay of weight matrices and embeddings; biases and norms have none."""
    schedule: Literal["linear", "inverse_sqrt", "cosine", "constant"] = "linear"
    """The course of the learning rate after warm-up."""
    warmup: float = 0.1
    """Warm-up in steps, or below 1 as a share of the stage's steps."""
    end: float = 0.0
    """Linear and cosine: the last learning rate as a share of the peak."""
    clip: float | None = 1.0
    """Largest norm of the gradient; none leaves it as it is."""

    def __post_init__(self) -> None:
        require(self.learning_rate >= 0, "optimizer.learning_rate must not be negative")
        require(self.warmup >= 0, "optimizer.warmup must not be negative")
        require(self.clip is None or self.clip > 0, "optimizer.clip must be above 0, or none")


def learning_rate(config: OptimizerConfig, step: int, steps: int) -> float:
    """The learning rate of the step-th step (from 0) of a stage of this many steps."""
    warmup = config.warmup if config.warmup >= 1 else round(config.warmup * steps)
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    factor = {
        "constant": lambda: 1.0,
        "linear": lambda: config.end + (1 - config.end) * (1 - done),
        "cosine": lambda: config.end + (1 - config.end) * 0.5 * (1 + math.cos(math.pi * done)),
        "inverse_sqrt": lambda: math.sqrt(max(warmup, 1) / max(step + 1, 1)),
    }[config.schedule]()
    return config.learning_rate * factor


def make_optimizer(
    weights: Iterable[nn.Parameter], config: OptimizerConfig
) -> torch.optim.Optimizer:
    """The optimizer of the trainable ones among these weights, in two groups: decayed and not."""
    trained = [weight for weight in weights if weight.requires_grad]
    groups = [
        {
            "params": [weight for weight in trained if weight.ndim >= 2],
            "weight_decay": config.weight_decay,
        },
        {"params": [weight for weight in trained if weight.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if config.name == "lamb":
        try:
            from pytorch_optimizer import Lamb
        except ImportError:
            raise RecipeError(
                "optimizer.name: lamb needs pytorch_optimizer: pip install 'isoglot[lamb]'"
            ) from None
        lamb: torch.optim.Optimizer = Lamb(
            groups, lr=config.learning_rate, betas=config.betas, eps=config.eps
        )
        return lamb
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=config.betas, eps=config.eps, fused=True
    )


def skips_by_itself(optimizer: torch.optim.Optimizer) -> bool:
    """Can it leave an update out on the device's word, without the host's?"""
    return bool(getattr(optimizer, "_step_supports_amp_scaling", False))


@contextmanager
def leave_out_if(optimizer: torch.optim.Optimizer, wrong: Tensor) -> Iterator[None]:
    """For a while, an optimizer that can (`skips_by_itself`) does nothing where this is true."""
    # what torch's gradient scaler tells its optimizers, and how it does
    optimizer.found_inf = wrong.float()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del optimizer.found_inf  # type: ignore[attr-defined]


def hand_on(before: torch.optim.Optimizer, after: torch.optim.Optimizer) -> None:
    """Give the moments of one stage's optimizer to the next's, for the weights they share."""
    if type(before) is not type(after):
        raise RecipeError(
            "keep_optimizer: the stage has another optimizer.name than the one before it, so there "
            "are no moments to keep. Leave keep_optimizer out, or name the same optimizer."
        )
    for group in after.param_groups:
        for weight in group["params"]:
            if weight in before.state:
                after.state[weight] = before.state[weight]
    for old, new in zip(before.param_groups, after.param_groups, strict=True):
        new.update({key: value for key, value in old.items() if key not in new})


def set_learning_rate(optimizer: torch.optim.Optimizer, value: float) -> None:
    """Use this learning rate for the next step."""
    for group in optimizer.param_groups:
        group["lr"] = value
