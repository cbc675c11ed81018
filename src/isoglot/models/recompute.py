"""Activation checkpointing: a layer keeps its input only and runs again in the backward pass.

The layers are those that transformers marks as blocks (`GradientCheckpointingLayer`); the
recomputation is torch's, inside the layer's own forward, so that hooks on the layer (of FSDP, or
those that collect hidden states) run once. The gradient is the same: torch restores the state of
its random generator, and hashed dropout has the same seeds.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer
from typing_extensions import override

from isoglot.errors import ModelError
from isoglot.models.attention import same_kernels
from isoglot.models.layers import hashed_dropouts

_SIDE_EFFECTS = "skip_fwd_side_effects_in_bwd_under_checkpoint"
"""torch's switch for compiled layers that write an attribute: those of fused QKV, which a pass
leaves as it found them."""


class RecomputedLayer(nn.Module):
    """The forward of a layer, with activation checkpointing in training."""

    @override
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        run = super().forward
        if not (self.training and torch.is_grad_enabled()):
            return run(*args, **kwargs)
        if torch.compiler.is_compiling():  # the compiled graph has its kernels already
            return checkpoint(run, *args, use_reentrant=False, **kwargs)
        again = same_kernels()
        return checkpoint(
            run, *args, use_reentrant=False, context_fn=lambda: (nullcontext(), again), **kwargs
        )


def checkpoint_activations(model: Any) -> int:
    """Let the layers of a transformers model run again in the backward pass; gives how many.

    Raises:
        ModelError: the architecture has no layers that can.
    """
    layers: list[nn.Module] = [
        one for one in model.modules() if isinstance(one, GradientCheckpointingLayer)
    ]
    if not layers:
        raise ModelError(
            f"memory.activation_checkpointing: a {model.config.model_type} model uses one layer "
            "several times or marks none that can be computed again. Leave it out."
        )
    for layer in layers:
        if not isinstance(layer, RecomputedLayer):
            # in place: weights keep their names, and `print(model)` shows the class
            layer.__class__ = _recomputed(type(layer))  # type: ignore[arg-type]
        for dropout in hashed_dropouts(layer):
            dropout.counts_uses = False
    if hasattr(torch._dynamo.config, _SIDE_EFFECTS):  # noqa: SLF001
        setattr(torch._dynamo.config, _SIDE_EFFECTS, True)  # noqa: SLF001
    return len(layers)


@functools.cache
def _recomputed(kind: type[nn.Module]) -> type[nn.Module]:
    return type(f"Recomputed{kind.__name__}", (RecomputedLayer, kind), {})
