"""The tensors of a model and its optimizer by name, as a checkpoint holds them.

Weights that share memory (tied embeddings) are stored once; state.json names the others. State of
the optimizer is stored by the name of its weight, `encoder.layer.0.weight|exp_avg`; numbers that
are no tensors are in state.json. Tensors that are sharded over processes (DTensor) stay so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.tensor import DTensor, Shard

from isoglot.errors import CheckpointError
from isoglot.pretraining.optimizers.low_bit import PlainStateOptimizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from isoglot.pretraining.checkpoints.checkpoint_files import SavedTensor

_AVERAGE = "average."
"""What names of the averaged weights of a training module begin with."""


def untied_tensors(module: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Weights and buffers without duplicates, and the name that each duplicate refers to."""
    seen: dict[object, str] = {}
    kept: dict[str, Tensor] = {}
    aliases: dict[str, str] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        key = _memory(tensor)
        if key in seen:
            aliases[name] = seen[key]
        else:
            seen[key] = name
            kept[name] = tensor.detach()
    return kept, aliases


def _memory(tensor: Tensor) -> object:
    """Equal for tensors that are the same numbers in the same memory."""
    if isinstance(tensor, DTensor) or not tensor.numel():
        return id(tensor)
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


def load_targets(
    module: nn.Module,
    saved: Mapping[str, SavedTensor],
    aliases: Mapping[str, str],
    *,
    partly: bool,
) -> tuple[dict[str, Tensor], list[tuple[Tensor, Tensor]]]:
    """The tensors of a module to load, by their names in the checkpoint, and what to copy then.

    Raises:
        RuntimeError: the checkpoint lacks one, has one of another shape or, unless it is to be
            loaded partly, has more.
    """
    own = module.state_dict()
    known = {**{name: name for name in saved}, **aliases}
    missing = [name for name in own if name not in known]
    more = [] if partly else [name for name in known if name not in own]
    if any(name.startswith(_AVERAGE) for name in (*missing, *more)):
        raise RuntimeError(
            "it has no average of the weights: resume without averaging"
            if missing
            else "it has an average of the weights: resume with the same averaging"
        )
    if missing or more:
        raise RuntimeError(
            f"it has no {', '.join(missing[:3])}" if missing else f"it has {', '.join(more[:3])}"
        )
    found: dict[str, Tensor] = {}
    copies: list[tuple[Tensor, Tensor]] = []
    for name, tensor in own.items():
        source = known[name]
        if saved[source].shape != tuple(tensor.shape):
            raise RuntimeError(
                f"{name} has the shape {saved[source].shape}, and this model's has "
                f"{tuple(tensor.shape)}"
            )
        if source in found:
            copies.append((tensor, found[source]))
        else:
            found[source] = tensor
    return found, copies


def optimizer_tensors(
    optimizer: torch.optim.Optimizer, module: nn.Module
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimizer's state by weight name: tensors, and everything else."""
    names = {id(weight): name for name, weight in module.named_parameters()}
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Any] = {}
    for weight, state in optimizer.state.items():
        for key, value in state.items():
            name = f"{names[id(weight)]}|{key}"
            if not torch.is_tensor(value):
                scalars[name] = value
                continue
            _refuse_subclass(value.to_local() if isinstance(value, DTensor) else value, name)
            tensors[name] = value.detach()
    groups = [
        {k: v for k, v in group.items() if k != "params" and isinstance(v, int | float | bool)}
        for group in optimizer.param_groups
    ]
    return tensors, {"state": scalars, "groups": groups}


def _refuse_subclass(tensor: Tensor, name: str) -> None:
    """A tensor that only looks like one (quantized) would be rounded by a copy of its values."""
    if hasattr(tensor, "__tensor_flatten__"):
        raise CheckpointError(
            f"A checkpoint cannot hold {name} of the optimizer, a {type(tensor).__name__}: use an "
            "optimizer whose state is made of plain tensors."
        )


def set_groups(optimizer: torch.optim.Optimizer, scalars: Mapping[str, Any]) -> None:
    """Restore what the optimizer records of its groups; settings come from the recipe."""
    for group, saved in zip(optimizer.param_groups, scalars["groups"], strict=True):
        for key, value in saved.items():
            if key not in group:
                if not isinstance(value, int | float):
                    raise TypeError(f"{key} of the optimizer is not a number")
                group[key] = value


def new_state(
    optimizer: torch.optim.Optimizer,
    module: nn.Module,
    saved: Mapping[str, SavedTensor],
    scalars: Mapping[str, Any],
) -> dict[str, Tensor]:
    """Give an optimizer the state of a checkpoint, its tensors still to be loaded: by name."""
    names = {id(weight): name for name, weight in module.named_parameters()}
    weights = {
        names[id(weight)]: (weight, group)
        for group in optimizer.param_groups
        for weight in group["params"]
    }
    tensors: dict[str, Tensor] = {}
    optimizer.state.clear()
    for name in [*saved, *scalars["state"]]:
        of_weight, _, key = name.rpartition("|")
        if of_weight not in weights:
            continue  # trained by another stage
        weight, group = weights[of_weight]
        if name in scalars["state"]:
            optimizer.state[weight][key] = scalars["state"][name]
            continue
        on_device = key != "step" or group.get("fused") or group.get("capturable")
        empty = _empty(weight, saved[name], weight.device if on_device else torch.device("cpu"))
        if isinstance(optimizer, PlainStateOptimizer):
            empty = optimizer.restored(weight, key, empty)
        tensors[name] = optimizer.state[weight][key] = empty
    return tensors


def _empty(weight: Tensor, saved: SavedTensor, device: torch.device) -> Tensor:
    """A tensor to load state into; one with a row for each row of its weight is sharded alike."""
    shape = torch.Size(saved.shape)
    if not isinstance(weight, DTensor) or not _follows(weight, shape):
        return torch.empty(shape, dtype=saved.dtype, device=device)
    local = weight.to_local().shape
    own = local if shape == weight.shape else local[:1] + shape[1:]
    return DTensor.from_local(
        torch.empty(own, dtype=saved.dtype, device=device),
        weight.device_mesh,
        weight.placements,
        run_check=False,
        shape=shape,
        stride=torch.empty(shape, device="meta").stride(),
    )


def _follows(weight: DTensor, shape: torch.Size) -> bool:
    """Is state of this shape sharded as its weight is?"""
    by_rows = all(not isinstance(one, Shard) or one.dim == 0 for one in weight.placements)
    return shape == weight.shape or (by_rows and shape[:1] == weight.shape[:1])
