"""Dropout with cheap chance: whether an element is dropped is a hash of its place and two seeds.

Compiled by torch, dropout draws every element with Philox, some hundred operations for one bit: on
an H200 as much time again as the norm that it is compiled into. A hash of a dozen operations serves
as well, and goes into the same kernel; the two seeds are drawn as all chance is, so that a training
that goes on from a checkpoint draws them again.

Only where a GPU runs compiled code; elsewhere it is torch's own dropout, which a CPU does faster.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from typing_extensions import override

_HIGHEST = 2**31 - 1
_ODD = (0x7FEB352D, 0x846CA68B - 2**32, 0x9E3779B1 - 2**32)
"""Multipliers of well-known 32-bit hashes: lowbias32's two, and the golden ratio's."""


def hash_dropouts(model: nn.Module) -> None:
    """Let all dropout layers of a model be of this kind."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                setattr(parent, name, HashedDropout(child.p))


class HashedDropout(nn.Dropout):
    """As torch's, but for where its chance comes from."""

    @override
    def forward(self, input: Tensor) -> Tensor:
        places = input.numel()
        cheap = torch.compiler.is_compiling() and input.is_cuda and places <= _HIGHEST
        if not (cheap and self.training and 0 < self.p < 1):
            return super().forward(input)
        seeds = torch.randint(0, _HIGHEST, (2,), dtype=torch.int32, device=input.device)
        return hashed_dropout(input, self.p, seeds)


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
