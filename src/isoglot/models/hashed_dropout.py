"""Dropout with cheap chance: whether an element is dropped is a hash of its place and two seeds.

Compiled by torch, dropout draws every element with Philox, some hundred operations for one bit: on
an H200 a third of the time of the norms that it is compiled into. A hash of a dozen operations
serves as well, and goes into the same kernel. The seeds of all layers are drawn before a pass, and
outside of what is compiled, as all chance is: a training that goes on from a checkpoint draws them
again. (Drawn inside, they would be drawn again for every element.)

Only a layer that was given seeds does so; without, it is torch's own dropout, which is faster where
nothing is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence

_HIGHEST = 2**31 - 1
_ODD = (0x7FEB352D, 0x846CA68B - 2**32, 0x9E3779B1 - 2**32)
"""Multipliers of well-known 32-bit hashes: lowbias32's two, and the golden ratio's."""
_ROW = 4
"""Numbers that are drawn for a layer: two seeds, and how far they move on with each use."""


class HashedDropout(nn.Dropout):
    """As torch's, but for where its chance comes from once it has seeds."""

    seeds: Tensor | None = None
    uses: int = 0
    """How often it was called in this pass: ALBERT's layers are one layer, and drop apart."""

    @override
    def forward(self, input: Tensor) -> Tensor:
        # training first: an evaluation is then not compiled anew once there are seeds
        if not self.training or self.seeds is None or not 0 < self.p < 1:
            return super().forward(input)
        seeds = self.seeds
        if self.uses:
            seeds = seeds[:2] + self.uses * seeds[2:]
        self.uses += 1
        return hashed_dropout(input, self.p, seeds)


def hash_dropouts(model: nn.Module) -> tuple[HashedDropout, ...]:
    """Let all dropout layers of a model be of this kind; gives them."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                setattr(parent, name, HashedDropout(child.p).train(child.training))
    return tuple(module for module in model.modules() if isinstance(module, HashedDropout))


def draw_seeds(layers: Sequence[HashedDropout], device: torch.device) -> None:
    """Give each layer the seeds of its next pass."""
    drawn = torch.randint(0, _HIGHEST, (len(layers), _ROW), dtype=torch.int32, device=device)
    for layer, seeds in zip(layers, drawn.unbind(), strict=True):
        layer.seeds, layer.uses = seeds, 0


def hashed_dropout(input: Tensor, p: float, seeds: Tensor) -> Tensor:  # noqa: A002
    """Drop elements with a probability and scale the others up."""
    place = torch.arange(input.numel(), dtype=torch.int32, device=input.device).view(input.shape)
    chance = _mixed(place, seeds) & _HIGHEST
    return torch.where(chance >= round(p * 2**31), input * (1 / (1 - p)), 0.0)


def _mixed(place: Tensor, seeds: Tensor) -> Tensor:
    """32 bits of each place that look like chance; all arithmetic is of 32 bits and overflows.

    The second seed comes in between: with one alone, masks would be rearrangements of each other.
    """
    mixed = (place ^ seeds[0]) * _ODD[0]
    mixed = (mixed ^ _right(mixed, 16)) + seeds[1]
    mixed = mixed * _ODD[1]
    mixed = (mixed ^ _right(mixed, 15)) * _ODD[2]
    return mixed ^ _right(mixed, 16)


def _right(bits: Tensor, number: int) -> Tensor:
    """Bits moved right, zeros after them: torch's own shift of a negative number keeps its sign."""
    return torch.bitwise_and(bits >> number, 2 ** (32 - number) - 1)
