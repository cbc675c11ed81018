"""A loss that is infinite or not a number: what is said of it, and the batch it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.types import Batch


class NonFiniteError(IsoglotError):
    """The loss or its gradient became infinite or not a number."""


def not_finite(
    step: int, means: dict[str, float], micro: list[Batch], folder: Path | None, *, rank: int
) -> NonFiniteError:
    """The error of a step (from 1), with its batch written into a folder, if there is one."""
    losses = ", ".join(f"{name} {value:.4g}" for name, value in means.items())
    message = f"step {step}: the loss or its gradient is not finite ({losses})."
    if folder is not None:
        message += f" The batch is in {_written(step, micro, folder, rank)}."
    return NonFiniteError(
        f"{message} Lower optimizer.learning_rate or set loss.not_finite: skip, and resume from "
        f"the last checkpoint."
    )


def _written(step: int, micro: list[Batch], folder: Path, rank: int) -> Path:
    from safetensors.torch import save_file

    tensors = {}
    for number, batch in enumerate(micro):
        for name, tensor in batch.rows.tensors().items():
            tensors[f"{number}.{name}"] = tensor.clone()
        tensors[f"{number}.site_positions"] = batch.positions
        tensors[f"{number}.site_targets"] = batch.targets
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"not-finite-step-{step}-rank-{rank}.safetensors"
    save_file(tensors, file)
    return file
