"""The initial weights of a sharded model: the first process holds them, the others only shapes.

    process 0     build()                    whole model in host memory
    the others    build() on torch's meta    names, shapes and types, no memory

`share_module` then goes through the units of the module: the others allocate a unit on their
device, receive its weights and buffers from the first process, and keep their part. So the weights
are those of the first process, bit for bit, and so is the state of torch's random generator.

A module that cannot be built without numbers is built whole on every process: one that reads its
weights while it is built (an encoder-decoder of a folder), or that keeps tensors that are neither
parameters nor buffers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils import _pytree

from isoglot.models.lm_head import LMHead
from isoglot.pretraining.processes.waiting import wait_for_all
from isoglot.pretraining.runtime import any_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accelerate import Accelerator
    from torch import nn

    from isoglot.pretraining.train_module import TrainModule

_NOTE = (
    "This model and its objectives cannot be built from shapes alone, so every process first holds "
    "all weights in host memory, before they are sharded."
)
_REGISTERED = ("_parameters", "_buffers", "_modules")


def build_on_first_process(
    build: Callable[[], TrainModule], accelerator: Accelerator
) -> tuple[TrainModule, str | None]:
    """Build a module whose weights will be split over all processes.

    Args:
        build: makes the module, the same on every process that starts with the same random state.
        accelerator: the processes; all of them call this function.

    Returns:
        The module, on the meta device on all processes but the first; and a note for the user where
        others had to build it with weights, too.
    """
    start = torch.get_rng_state()
    module = build() if accelerator.is_main_process else _build_on_meta(build)
    wait_for_all(accelerator)  # the first process takes minutes where the model is large
    of_first: list[object] = [None, None]
    if module is not None and accelerator.is_main_process:
        of_first = [_layout(module), torch.get_rng_state()]
    dist.broadcast_object_list(of_first, src=0)
    layout, random = of_first
    assert isinstance(random, Tensor)
    builds_whole = module is None or _layout(module) != layout
    if module is None or builds_whole:
        torch.set_rng_state(start)
        module = build()
    torch.set_rng_state(random)
    wait_for_all(accelerator)
    return module, _NOTE if any_process(accelerator, builds_whole) else None


def _build_on_meta(build: Callable[[], TrainModule]) -> TrainModule | None:
    """The module without numbers; none if it needs them to be built, or keeps loose tensors."""
    try:
        with torch.device("meta"):
            module = build()
    except (RuntimeError, TypeError, ValueError):
        # no number on meta can be read; any other error is raised again by the build with weights
        return None
    return None if _has_loose_tensors(module) else module


def _has_loose_tensors(module: nn.Module) -> bool:
    """Does a module on the meta device keep tensors that are no parameters or buffers?"""
    known = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
    return any(
        isinstance(value, Tensor) and value.is_meta and id(value) not in known
        for value in _attributes(module)
    )


def _layout(module: nn.Module) -> list[object]:
    """What a module is besides its numbers, to compare a module without numbers with a whole one.

    All parameters and buffers by name, which of them are one tensor, their shapes and types, and
    which are trained; and what LM heads have found out about themselves with numbers.
    """
    numbers: dict[int, int] = {}
    named = (
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    )
    tensors = [
        (
            name,
            numbers.setdefault(id(tensor), len(numbers)),
            tuple(tensor.shape),
            tensor.dtype,
            tensor.requires_grad,
        )
        for name, tensor in named
    ]
    heads = [one for one in _attributes(module) if isinstance(one, LMHead)]
    return [*tensors, *(head.ends_with_output_embeddings for head in heads)]


def _attributes(module: nn.Module) -> Iterator[object]:
    """The attributes of a module and its submodules, and what their lists and dictionaries hold."""
    for one in module.modules():
        for name, attribute in vars(one).items():
            if name not in _REGISTERED:
                yield from _pytree.tree_leaves(attribute)
