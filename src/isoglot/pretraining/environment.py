"""What a run asks of the machine: trackers that must be installed, launchers that are supported.

accelerate drops a tracker whose package is missing without a word, and reads settings from
environment variables that `accelerate launch` sets. What Isoglot would ignore is refused here.
"""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from accelerate.tracking import get_available_trackers

from isoglot.errors import IsoglotError, RecipeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.pretraining.config import PretrainConfig

_PACKAGES = {"comet_ml": "comet-ml"}
"""Packages of trackers that have another name."""
_UNSUPPORTED = {
    "ACCELERATE_USE_FSDP": "FSDP",
    "ACCELERATE_USE_DEEPSPEED": "DeepSpeed",
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "tensor or context parallelism",
    "ACCELERATE_USE_TP": "tensor parallelism",
}
"""Variables that ask accelerate for what is not its to decide, or not supported."""
_INSTEAD = {
    "ACCELERATE_USE_FSDP": "Set --set distributed.strategy=fsdp instead.",
    "ACCELERATE_USE_DEEPSPEED": "Set --set distributed.strategy=fsdp for what its ZeRO does.",
}
"""What to do instead."""
_ACCUMULATION = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"
_LENGTH = 250
"""Characters of a setting that trackers accept."""


def check_environment(trackers: Sequence[str]) -> None:
    """Refuse trackers that are not installed, and launchers whose request would be ignored."""
    available = {str(kind.value) for kind in get_available_trackers()}
    for name in trackers:
        if name not in available:
            raise RecipeError(
                f"logging.trackers: {name} is not installed. Install it (pip install "
                f"{_PACKAGES.get(name, name)}), or take it out: --set logging.trackers=[]."
            )
    for variable, what in _UNSUPPORTED.items():
        if os.environ.get(variable, "").lower() in ("1", "true", "yes", "on", "y", "t"):
            instead = _INSTEAD.get(variable, "It is not supported.")
            raise IsoglotError(
                f"{variable}={os.environ[variable]} asks accelerate for {what}, and the recipe "
                f"decides how processes share the model (distributed.strategy). {instead} Launch "
                "with torchrun, or with accelerate launch and a configuration without it."
            )
    if os.environ.get(_ACCUMULATION, "1") not in ("", "1"):
        raise IsoglotError(
            f"{_ACCUMULATION}={os.environ[_ACCUMULATION]} would scale the gradient: batch.rows and "
            "batch.micro_rows decide how many micro-batches a step has. Remove it from "
            "accelerate's configuration."
        )


def hyperparameters(config: PretrainConfig) -> dict[str, str | float | int | bool]:
    """All settings of a run by their path (`optimizer.learning_rate`), as trackers take them."""
    return dict(_flatten(config))


def _flatten(value: Any, path: str = "") -> list[tuple[str, str | float | int | bool]]:
    if is_dataclass(value) and not isinstance(value, type):
        inner: dict[Any, Any] = {one.name: getattr(value, one.name) for one in fields(value)}
    elif isinstance(value, dict):
        inner = value
    elif isinstance(value, tuple | list) and any(map(is_dataclass, value)):
        inner = dict(enumerate(value))
    elif isinstance(value, bool | int | float):
        return [(path, value)]
    else:
        text = "null" if value is None else str(value)
        return [(path, text[:_LENGTH])]
    return [
        one
        for name, part in inner.items()
        for one in _flatten(part, f"{path}.{name}" if path else str(name))
    ]
