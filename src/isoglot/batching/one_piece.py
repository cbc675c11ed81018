"""A batch whose tensors lie in one piece of memory, to travel from a worker in one go.

Between processes torch passes memory on piece by piece, and asks the worker for each, who is busy
building the next batch: with ten pieces a batch, the training process would wait ten times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from isoglot.types import Batch

_ALIGNED = 16
"""Tensors begin at multiples of so many bytes, more than any number has."""


def in_one_piece(batch: Batch) -> Batch:
    """The same batch, its tensors copied one after the other."""
    tensors: list[Tensor] = []

    def noted(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    batch.map(noted)
    room = [-(-tensor.nbytes // _ALIGNED) * _ALIGNED for tensor in tensors]
    pieces = iter(torch.empty(sum(room), dtype=torch.uint8).split(room))

    def copied(tensor: Tensor) -> Tensor:
        piece: Tensor = next(pieces)[: tensor.nbytes]
        return piece.view(tensor.dtype).view(tensor.shape).copy_(tensor)

    return batch.map(copied)
