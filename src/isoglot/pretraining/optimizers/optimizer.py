"""The optimizer and its learning rate: AdamW, LAMB or Muon, warm-up, then one of five schedules.

AdamW is torch's, or one that needs less memory (`low_bit.py`, `offload.py`). Muon is in `muon.py`.

The learning rate is a function of the step alone, so a checkpoint needs no scheduler state.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch

from isoglot.errors import RecipeError, require
from isoglot.models.sharding import is_split
from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.ranges import AdamBeta, Probability, Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from torch import Tensor, nn


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig:
    """Which optimizer, and how its learning rate goes."""

    name: Literal["adamw", "lamb", "muon"] = "adamw"
    """AdamW (fused), LAMB (from pytorch_optimizer), or Muon for the matrices of the layers and
    AdamW for all other weights."""
    learning_rate: Annotated[float, Range(0, 100)] = 2e-4
    """Peak learning rate."""
    betas: tuple[AdamBeta, AdamBeta] = (0.9, 0.98)
    """Decay rates of the two moments."""
    eps: Annotated[float, Range(0, 1)] = 1e-6
    """Added to the denominator."""
    muon_momentum: AdamBeta = 0.95
    """Muon: the momentum of its matrices."""
    weight_decay: Annotated[float, Range(0, 100)] = 0.01
    """Decay of weight matrices and embeddings; biases and norms have none."""
    schedule: Literal["linear", "inverse_sqrt", "cosine", "constant", "wsd"] = "linear"
    """The course of the learning rate after warm-up. `wsd` (warm-up, stable, decay) keeps the peak
    until the last steps: a run can be prolonged, or decayed from any of its checkpoints."""
    decay_ratio: Annotated[float, Range(0, 1)] = 0.2
    """`wsd`: the share of the stage's steps in which the learning rate falls."""
    decay_shape: Literal["one_minus_sqrt", "linear"] = "one_minus_sqrt"
    """`wsd`: how it falls; 1 - sqrt(share of the decay done) is that of Haegele et al. (2024)."""
    warmup_steps: Annotated[int | None, Range(0, 10**9)] = None
    """Steps of linear warm-up; none: `warmup_ratio` decides."""
    warmup_ratio: Annotated[float | None, Range(0, 1)] = None
    """Warm-up as a share of the stage's steps; if neither is set: 0.1."""
    warmup_start_ratio: Probability = 0.0
    """The learning rate that warm-up rises from, as a share of the peak; 1: no warm-up."""
    min_lr_ratio: Probability = 0.0
    """Linear, cosine and wsd: the last learning rate as a share of the peak."""
    max_grad_norm: Annotated[float | None, Range(0, 1e9, above=True)] = 1.0
    """Norm that the gradient is clipped to; none: no clipping."""

    def __post_init__(self) -> None:
        check_ranges(self)
        require(
            self.warmup_steps is None or self.warmup_ratio is None,
            "optimizer.warmup_steps and optimizer.warmup_ratio are both set: set one to null",
        )

    def num_warmup_steps(self, steps: int) -> int:
        """Warm-up steps of a stage of this many steps."""
        if self.warmup_steps is not None:
            return self.warmup_steps
        return round((0.1 if self.warmup_ratio is None else self.warmup_ratio) * steps)


def learning_rate(config: OptimizerConfig, step: int, steps: int) -> float:
    """The learning rate of the step-th step (from 0) of a stage of this many steps."""
    warmup = config.num_warmup_steps(steps)
    if step < warmup:
        rising = config.learning_rate * (step + 1) / warmup
        start = config.warmup_start_ratio
        return start * config.learning_rate + (1 - start) * rising
    if config.schedule == "inverse_sqrt":
        return config.learning_rate * math.sqrt(max(warmup, 1) / max(step + 1, 1))
    done = (step - warmup) / max(1, steps - warmup)
    left = {
        "constant": lambda: 1.0,
        "linear": lambda: 1 - done,
        "cosine": lambda: 0.5 * (1 + math.cos(math.pi * done)),
        "wsd": lambda: _left_by_wsd(config, step, steps),
    }[config.schedule]()
    lowest = 1.0 if config.schedule == "constant" else config.min_lr_ratio
    return config.learning_rate * (lowest + (1 - lowest) * left)


def _left_by_wsd(config: OptimizerConfig, step: int, steps: int) -> float:
    """Between the lowest learning rate (0) and the peak (1)."""
    decay_steps = config.decay_ratio * steps
    done = max(0.0, step - (steps - decay_steps)) / max(1.0, decay_steps)
    return 1 - (math.sqrt(done) if config.decay_shape == "one_minus_sqrt" else done)


def make_optimizer(
    weights: Iterable[nn.Parameter],
    config: OptimizerConfig,
    memory: MemoryConfig | None = None,
    *,
    matrices: Collection[Tensor] = (),
    seed: int = 0,
) -> torch.optim.Optimizer:
    """The optimizer of the trainable ones among these weights, in two groups: decayed and not.

    Args:
        weights: the weights of a stage; frozen ones are left out.
        matrices: those that Muon may train (`layer_matrices`).
        config: which optimizer.
        memory: types of weights and moments, and where the moments are; none: torch's AdamW.
        seed: of stochastic rounding.
    """
    memory = memory or MemoryConfig()
    trained = [weight for weight in weights if weight.requires_grad]
    by_muon = [one for one in trained if one in matrices] if config.name == "muon" else []
    if config.name == "muon":
        require(
            len(by_muon) > 0,
            "optimizer.name: muon has nothing to train: the matrices of the layers are frozen, or "
            "shared by all layers (ALBERT). Set optimizer.name: adamw.",
        )
        trained = [weight for weight in trained if weight not in matrices]
    groups = [
        {
            "params": [weight for weight in trained if weight.ndim >= 2],
            "weight_decay": config.weight_decay,
        },
        {"params": [weight for weight in trained if weight.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if config.name == "lamb":
        return _make_lamb(groups, config, split=any(map(is_split, trained)))
    if by_muon:
        from isoglot.pretraining.optimizers.muon import MuonWithAdamW

        return MuonWithAdamW(by_muon, groups, config)
    if memory.offload_optimizer:
        from isoglot.pretraining.optimizers.offload import OffloadedAdamW

        return OffloadedAdamW(groups, config)
    if memory.needs_torchao:
        from isoglot.pretraining.optimizers.low_bit import LowBitAdamW

        return LowBitAdamW(groups, config, memory, seed=seed)
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=config.betas, eps=config.eps, fused=True
    )


def _make_lamb(
    groups: list[dict[str, Any]], config: OptimizerConfig, *, split: bool
) -> torch.optim.Optimizer:
    """pytorch_optimizer's LAMB; for weights that are split over processes, one of our own."""
    from pytorch_optimizer import Lamb

    kind = Lamb
    if split:
        from isoglot.pretraining.optimizers.sharded_lamb import ShardedLamb

        kind = ShardedLamb
    lamb: torch.optim.Optimizer = kind(
        groups, lr=config.learning_rate, betas=config.betas, eps=config.eps
    )
    return lamb


def check_packages(config: OptimizerConfig, memory: MemoryConfig) -> None:
    """Refuse an optimizer whose package is not installed."""
    if config.name == "lamb" and find_spec("pytorch_optimizer") is None:
        raise RecipeError(
            "optimizer.name: lamb needs pytorch_optimizer: pip install 'isoglot[lamb]'."
        )
    if memory.needs_torchao and find_spec("torchao") is None:
        raise RecipeError(
            "memory.weights: bf16 and memory.moments: bf16 or int8 need torchao: pip install "
            "'isoglot[low-bit]'."
        )


def supports_device_skip(optimizer: torch.optim.Optimizer) -> bool:
    """Can the optimizer skip an update by a flag on the device, without the host?"""
    return bool(getattr(optimizer, "_step_supports_amp_scaling", False))


@contextmanager
def skip_update_if(optimizer: torch.optim.Optimizer, skip: Tensor) -> Iterator[None]:
    """Inside the block, `optimizer.step()` does nothing if `skip` is true on the device."""
    # the attribute by which torch's gradient scaler skips updates
    optimizer.found_inf = skip.float()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del optimizer.found_inf  # type: ignore[attr-defined]


def transfer_state(before: torch.optim.Optimizer, after: torch.optim.Optimizer) -> None:
    """Copy the moments of one stage's optimizer to the next one's, for the weights they share."""
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
