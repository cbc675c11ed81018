"""How the processes of a run share the model: DDP, or FSDP2 over all of them or over groups.

    ddp     every process holds all weights, gradients and moments
    fsdp    each holds 1 / processes of them; a layer's weights are gathered when it runs
    hsdp    each holds 1 / shard_processes of them; groups hold the same and add up gradients

`share_module` is the one place that decides what is wrapped. With FSDP2 (`fully_shard`) every
transformer layer of the module is a unit that is gathered for its pass and freed after it: those of
the encoder, the decoder, momentum encoders and teachers. A momentum encoder is one more unit around
its layers. All other weights (embeddings, LM head, objectives' heads) are whole from the beginning
of a micro-batch to the end of its backward pass. Buffers (queues) are the same on every process.
The first process alone builds the weights (`initial_weights.py`) and sends each unit to the others.

Numbers are those of DDP: weights are gathered in their own type, and autocast rounds them where
they are used; gradients are added up in float32 or better. A sharded weight is a `DTensor`, so that
optimizers work on it as on any other.
"""

from __future__ import annotations

import inspect
import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from isoglot.errors import RecipeError, require
from isoglot.models.sharding import is_split, local_part, reshard, transformer_layers
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accelerate import Accelerator
    from torch import Tensor, nn
    from torch.distributed.device_mesh import DeviceMesh

    from isoglot.pretraining.config import PretrainConfig
    from isoglot.pretraining.train_module import TrainModule

Strategy = Literal["ddp", "fsdp", "hsdp"]
_REPLICATE, _SHARD = "replicate", "shard"
"""Names of the two dimensions of a mesh of processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedConfig:
    """How the processes of a run share the model."""

    strategy: Strategy = "ddp"
    """`ddp`: every process holds all weights; `fsdp`: weights, gradients and moments are split over
    all processes; `hsdp`: split over the processes of a group, each group holds all of them."""
    shard_processes: Annotated[int | None, Range(2, 2**16)] = None
    """Processes that share one copy of the weights under hsdp; none: the processes of a node."""
    accumulate: Literal["parts", "whole"] = "parts"
    """With fsdp and hsdp, gradients of a step's micro-batches are added up in parts, exchanged
    after each micro-batch, or whole on each process, exchanged once a step."""
    timeout_minutes: Annotated[float, Range(0.1, 10_000)] = 30.0
    """How long a process waits for the others before the run ends with an error."""

    def __post_init__(self) -> None:
        check_ranges(self)
        require(
            self.shard_processes is None or self.strategy == "hsdp",
            "distributed.shard_processes is for distributed.strategy: hsdp. Leave it out, or set "
            "the strategy.",
        )

    def shards(self, num_processes: int) -> bool:
        """Are weights split over the processes of a run?"""
        return self.strategy != "ddp" and num_processes > 1

    def num_parts(self, num_processes: int) -> int:
        """The number of processes that a copy of the weights is split over.

        Raises:
            RecipeError: the processes do not divide into groups.
        """
        if not self.shards(num_processes):
            return 1
        if self.strategy == "fsdp":
            return num_processes
        local = int(os.environ.get("LOCAL_WORLD_SIZE", num_processes))
        number = self.shard_processes or local
        if number == 1:
            raise RecipeError(
                "distributed.strategy: hsdp splits the model over the processes of a node, and "
                "this one has one. Set distributed.shard_processes, or strategy: fsdp."
            )
        if num_processes % number:
            raise RecipeError(
                f"distributed.shard_processes: {num_processes} processes do not divide into groups "
                f"of {number}. Set it to a number from 2 on that divides {num_processes}."
            )
        return number

    def note(self, num_processes: int) -> str | None:
        """A sentence for a strategy that does nothing with so many processes."""
        if self.strategy != "ddp" and num_processes == 1:
            return (
                f"distributed.strategy: {self.strategy} does nothing with one process, which holds "
                "the whole model. Start several: torchrun --nproc-per-node=N."
            )
        return None


def check_processes(config: PretrainConfig, num_processes: int) -> None:
    """Refuse what cannot be with so many processes, before anything is built."""
    shared = config.distributed
    shared.num_parts(num_processes)
    if shared.shards(num_processes) and config.batch.micro_rows == "auto":
        raise RecipeError(
            f"batch.micro_rows: auto tries rows on each process by itself, and "
            f"distributed.strategy: {shared.strategy} splits the model over {num_processes} "
            "processes. Set batch.micro_rows to a number; --estimate tells what it needs."
        )


def share_module(
    module: TrainModule, config: DistributedConfig, accelerator: Accelerator
) -> nn.Module:
    """The module as the steps call it: itself, in DDP, or with its weights split in place."""
    if accelerator.num_processes == 1:
        return module
    if config.shards(accelerator.num_processes):
        _shard(module, _mesh(config, accelerator), accelerator.device)
        return module
    return _ddp(module, accelerator)


def _ddp(module: TrainModule, accelerator: Accelerator) -> nn.Module:
    """The module in DDP; buffers are not broadcast."""
    from torch.nn.parallel import DistributedDataParallel

    parameters = inspect.signature(DistributedDataParallel).parameters
    # torch 2.13 renamed the argument
    new, old = "forward_sync_buffers", "broadcast_buffers"
    settings: dict[str, Any] = {new if new in parameters else old: False}
    if accelerator.device.type == "cuda":
        settings["device_ids"] = [accelerator.device]
    wrapped = DistributedDataParallel(module, **settings)
    _settle_buckets(wrapped, module)
    return wrapped


def _settle_buckets(wrapped: nn.Module, module: nn.Module) -> None:
    """Take a pass without data, so that DDP has its final buckets before the first step.

    DDP arranges gradients anew after its first backward pass. Three processes or more add up a
    number in an order that depends on its place in a bucket: the first step of a resumed run would
    round differently from the same step of a run that was never stopped.
    """
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    module.__dict__["forward"] = lambda: sum(weight.sum() * 0 for weight in weights)
    try:
        wrapped().backward()
    finally:
        del module.__dict__["forward"]
    module.zero_grad(set_to_none=True)


def _mesh(config: DistributedConfig, accelerator: Accelerator) -> DeviceMesh:
    from torch.distributed.device_mesh import init_device_mesh

    world = accelerator.num_processes
    parts = config.num_parts(world)
    shape, names = [world // parts, parts], [_REPLICATE, _SHARD]
    if parts == world:
        del shape[0], names[0]
    return init_device_mesh(accelerator.device.type, tuple(shape), mesh_dim_names=tuple(names))


def _shard(module: TrainModule, mesh: DeviceMesh, device: torch.device) -> None:
    """Split the weights of a module in place, unit by unit: only one is whole on the device."""
    from torch.distributed.fsdp import (
        MixedPrecisionPolicy,
        fully_shard,
        register_fsdp_forward_method,
    )

    from isoglot.models.encoder import Encoder
    from isoglot.objectives.contrast.momentum import MomentumEncoder

    momentum = [one.module for one in module.modules() if isinstance(one, MomentumEncoder)]
    units: list[nn.Module] = [
        *transformer_layers(module),
        *(one for one in momentum if isinstance(one, Encoder)),
        module,
    ]
    for unit in units:
        _place(unit, device)
        low = any(weight.element_size() < 4 for weight in unit.parameters())
        # gradients of bf16 weights are added up in float32
        policy = MixedPrecisionPolicy(reduce_dtype=torch.float32 if low else None)
        fully_shard(unit, mesh=mesh, mp_policy=policy)
    register_fsdp_forward_method(module, "encode")
    module.register_forward_hook(_reshard_without_gradient)


def _place(unit: nn.Module, device: torch.device) -> None:
    """Move the whole weights and buffers of a unit to the device; the first process's for all."""
    for tensor in dict.fromkeys((*unit.parameters(), *unit.buffers())):
        if is_split(tensor):
            continue
        if tensor.is_meta:
            _allocate(tensor, device)
        elif tensor.device != device:
            tensor.data = tensor.data.to(device)
        dist.broadcast(tensor.detach(), src=0)


def _allocate(tensor: Tensor, device: torch.device) -> None:
    """Give a weight or buffer of the meta device memory, in place: tied weights stay tied."""
    empty = torch.empty_like(tensor, device=device, requires_grad=False)
    if isinstance(tensor, torch.nn.Parameter):
        empty = torch.nn.Parameter(empty, requires_grad=tensor.requires_grad)
    torch.utils.swap_tensors(tensor, empty)


def _reshard_without_gradient(module: nn.Module, *_: object) -> None:
    """After a pass without gradient no backward pass frees the weights."""
    if not torch.is_grad_enabled():
        reshard(module)


@contextmanager
def gradient_exchange(
    wrapped: nn.Module, config: DistributedConfig, *, last: bool
) -> Iterator[None]:
    """Around the passes of one micro-batch: processes add up gradients after a step's last one.

    With `accumulate: parts` groups of processes do so after each, to hold a part of the gradient
    only.
    """
    from torch.distributed.fsdp import FSDPModule

    if isinstance(wrapped, FSDPModule):
        wrapped.set_requires_gradient_sync(last or config.accumulate == "parts")
        wrapped.set_requires_all_reduce(last)
    no_sync = getattr(wrapped, "no_sync", nullcontext)
    with nullcontext() if last else no_sync():
        yield


def fill_gradients(weights: Sequence[Tensor]) -> None:
    """Give the split weights that no loss of a step reads a gradient of zero, as DDP does."""
    for weight in weights:
        if weight.grad is None and is_split(weight):
            weight.grad = torch.zeros_like(weight)


def clip_gradients(weights: Sequence[Tensor], max_norm: float) -> Tensor:
    """Clip the norm of the whole gradient, over all weights and all of their parts; gives it."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    meshes = [one.device_mesh for one in gradients if isinstance(one, DTensor)]
    if not meshes:
        return torch.nn.utils.clip_grad_norm_(weights, max_norm)
    parts = [local_part(gradient) for gradient in gradients]
    norm = torch.nn.utils.get_total_norm(parts)
    squared = norm.double().square()
    dist.all_reduce(squared, group=meshes[0].get_group(_SHARD))
    norm = squared.sqrt().to(norm.dtype)
    # as torch's own: the gradient is never scaled up
    torch._foreach_mul_(parts, torch.clamp(max_norm / (norm + 1e-6), max=1.0))
    return norm
