"""Queries, keys and values in one product, for any encoder that computes them in three.

Three products with narrow matrices keep a GPU less busy than one with a wide one, there and back.
The layers stay as they are, with their weights and names; only their `forward` is another: whoever
is asked first computes for all, and the others hand on their part of it. Layers that turn out to
read different inputs (cross-attention) compute for themselves.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_NAMES = (("query", "key", "value"), ("q_proj", "k_proj", "v_proj"))
"""What transformers calls them. Where one layer makes all three (ModernBERT) there is none."""


def join_projections(model: nn.Module, *, only_on_gpu: bool = False) -> int:
    """Let queries, keys and values of all attention layers come of one product; gives how many."""
    found = [
        [getattr(module, name) for name in names]
        for module in model.modules()
        for names in _NAMES
        if all(isinstance(getattr(module, name, None), nn.Linear) for name in names)
    ]
    found = [layers for layers in found if len({layer.bias is None for layer in layers}) == 1]
    for layers in found:
        together = _Together(layers, only_on_gpu=only_on_gpu)
        for number, layer in enumerate(layers):
            layer.forward = functools.partial(together.part, number)
    return len(found)


class _Together:
    """Layers that read the same."""

    def __init__(self, layers: list[nn.Linear], *, only_on_gpu: bool) -> None:
        self.layers, self.only_on_gpu = layers, only_on_gpu
        self.input: Tensor | None = None
        self.outputs: tuple[Tensor, ...] = ()

    def part(self, number: int, input: Tensor) -> Tensor:  # noqa: A002 (the name it has in torch)
        """What one of the layers makes of an input."""
        if number == 0 and (input.is_cuda or not self.only_on_gpu):
            self.input, self.outputs = input, self.all_of(input)
        same, outputs = input is self.input, self.outputs
        if not same or number == len(self.layers) - 1:  # nobody asks again: let go of it
            self.input, self.outputs = None, ()
        layer = self.layers[number]
        return outputs[number] if same else F.linear(input, layer.weight, layer.bias)

    def all_of(self, input: Tensor) -> tuple[Tensor, ...]:  # noqa: A002
        """What all of them make of it."""
        weights: list[Tensor] = [layer.weight for layer in self.layers]
        biases: list[Tensor] = [layer.bias for layer in self.layers if layer.bias is not None]
        made = F.linear(
            input,
            torch.cat(weights),
            torch.cat(biases) if biases else None,
        )
        parts: tuple[Tensor, ...] = made.split([each.out_features for each in self.layers], dim=-1)
        return parts
