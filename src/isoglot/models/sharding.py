"""Weights that are split over processes by FSDP2: their parts, their whole, and passes with them.

Outside of a pass every weight of a sharded module is a `DTensor`: a process holds a part of its
rows. Inside a pass a transformer layer gathers its weights from all processes and frees them again,
so all processes run the same layers in the same order:

- a process without rows runs a pass over `placeholder_rows` (`runs_together` says when);
- within `gathered`, all weights of a module are whole, and each process runs what it needs.

A module whose weights are not split is left alone by everything here.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.types import Rows


def transformer_layers(module: nn.Module) -> list[nn.Module]:
    """The transformer layers of transformers models anywhere in a module, each once."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    return [one for one in module.modules() if isinstance(one, GradientCheckpointingLayer)]


def local_part(weight: Tensor) -> Tensor:
    """The part of a weight, or of its gradient, that this process holds; shares its memory."""
    return weight.to_local() if isinstance(weight, DTensor) else weight


def is_split(weight: Tensor) -> bool:
    """Does this process hold a part of a weight only?"""
    return isinstance(weight, DTensor)


@contextmanager
def whole_weight(weight: Tensor) -> Iterator[Tensor]:
    """Within: the whole weight on every process, to read and to change in place."""
    if not isinstance(weight, DTensor):
        yield weight
        return
    whole = weight.full_tensor()
    yield whole
    mesh, placements = weight.device_mesh, weight.placements
    # every process cuts out its own part: all have the same whole
    own = distribute_tensor(whole, mesh, placements, src_data_rank=None)
    weight.to_local().copy_(own.to_local())


def runs_together(module: nn.Module) -> bool:
    """Is a pass of a module an exchange of weights, which all processes must take part in?"""
    return bool(_sharded_modules(module))


def placeholder_rows(rows: Rows) -> Rows:
    """One row of one token, for a process that has no rows in a pass of all processes."""
    return rows.map(lambda tensor: tensor.new_zeros((1, 1)))


@contextmanager
def gathered(module: nn.Module) -> Iterator[None]:
    """Within: the weights of a module's layers are whole, and passes exchange nothing.

    All processes enter and leave it together. Each then holds the weights once more than its part.
    """
    layers = _sharded_modules(module)
    for layer in layers:
        layer.set_reshard_after_forward(False, recurse=False)
        layer.unshard()
    try:
        yield
    finally:
        for layer in layers:
            layer.reshard()
            layer.set_reshard_after_forward(True, recurse=False)


@contextmanager
def whole_weights(module: nn.Module, *, keep: bool) -> Iterator[None]:
    """Within: the weights of a sharded module are whole, in host memory, where `keep` is set.

    All processes enter it together: each weight is gathered from all of them, and a process that
    does not keep it has its part as before. Nothing is trained within.
    """
    reshard(module)
    if not any(is_split(weight) for weight in module.parameters()):
        yield
        return
    whole: dict[int, nn.Parameter] = {}
    for weight in module.parameters():
        plain: Tensor = weight.detach()
        plain = plain.full_tensor() if isinstance(plain, DTensor) else plain
        if keep:
            whole[id(weight)] = nn.Parameter(plain.cpu(), requires_grad=weight.requires_grad)
    places = [
        (one, name, weight)
        for one in module.modules()
        for name, weight in one._parameters.items()  # noqa: SLF001
        if weight is not None and id(weight) in whole
    ]
    for one, name, weight in places:
        one._parameters[name] = whole[id(weight)]  # noqa: SLF001
    try:
        yield
    finally:
        for one, name, weight in places:
            one._parameters[name] = weight  # noqa: SLF001


def _sharded_modules(module: nn.Module) -> list[Any]:
    """The modules inside a module, and itself, that gather weights of their own."""
    if not (dist.is_available() and dist.is_initialized()):
        return []
    from torch.distributed.fsdp import FSDPModule

    return [one for one in module.modules() if isinstance(one, FSDPModule)]


def reshard(module: nn.Module) -> None:
    """Free the weights that a pass without gradient has left whole (those of the root)."""
    from torch.distributed.fsdp import FSDPModule

    if isinstance(module, FSDPModule):
        module.reshard()
