"""Vectors of all processes in one order: the order of the micro-batches of the step.

Micro-batch m of a step belongs to process m mod world, so the global order is by place in the step
first and by process second. Counts may differ from micro-batch to micro-batch, and be zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


def gathered(pieces: Sequence[Tensor]) -> Tensor:
    """One tensor for each micro-batch of this process -> the rows of all, in global order.

    Every process must call it with the same number of micro-batches.
    """
    own = torch.cat(list(pieces))
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return own
    counts = torch.tensor([len(piece) for piece in pieces], device=own.device)
    lengths = torch.stack(_from_all(counts)).tolist()
    most = max(map(sum, lengths))
    padded = own.new_zeros(most, *own.shape[1:])
    padded[: len(own)] = own
    split = [
        whole[: sum(of)].split(of) for whole, of in zip(_from_all(padded), lengths, strict=True)
    ]
    return torch.cat([piece for micro in zip(*split, strict=True) for piece in micro])


def _from_all(tensor: Tensor) -> list[Tensor]:
    """The tensors of one shape that all processes hold."""
    found = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(found, tensor.contiguous())
    return found
