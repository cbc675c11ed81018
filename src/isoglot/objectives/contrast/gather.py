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


def gathered(micro: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The rows of all processes, in global order.

    Args:
        micro: for each micro-batch of this process, tensors with the same number of rows, maybe
            none. Every process must come with the same number of micro-batches.
    """
    own = [torch.cat(column) for column in zip(*micro, strict=True)]
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return tuple(own)
    counts = torch.tensor([len(columns[0]) for columns in micro], device=own[0].device)
    # once for all columns: reading the counts makes the host wait for the device
    lengths = torch.stack(_from_all(counts)).tolist()
    return tuple(_in_order(column, lengths) for column in own)


def _in_order(own: Tensor, lengths: list[list[int]]) -> Tensor:
    """The rows of all processes, given the length of each micro-batch of each process."""
    padded = own.new_zeros(max(map(sum, lengths)), *own.shape[1:])
    padded[: len(own)] = own
    split = [
        whole[: sum(of)].split(of) for whole, of in zip(_from_all(padded), lengths, strict=True)
    ]
    return torch.cat([piece for place in zip(*split, strict=True) for piece in place])


def _from_all(tensor: Tensor) -> list[Tensor]:
    """The tensors of one shape that all processes hold."""
    found = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(found, tensor.contiguous())
    return found
