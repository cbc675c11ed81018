"""The rows of all processes of a step, in global order: by micro-batch, then by process.

Micro-batch m of a step belongs to process m mod world, and all processes have the same number of
micro-batches. Numbers of rows may differ, and be 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLayout:
    """How many rows each micro-batch of each process has in a step."""

    lengths: tuple[tuple[int, ...], ...]
    """Of each process, the rows of each of its micro-batches."""
    rank: int = 0
    """This process."""

    @classmethod
    def exchange(cls, counts: Sequence[int], device: torch.device) -> StepLayout:
        """The layout, given the rows of this process's micro-batches; all processes call it.

        Reading the counts makes the host wait for the device, so one layout serves all tensors.
        """
        if num_processes() == 1:
            return cls(lengths=(tuple(counts),))
        found = torch.stack(_all_gather(torch.tensor(counts, device=device))).tolist()
        return cls(lengths=tuple(map(tuple, found)), rank=dist.get_rank())

    @property
    def num_rows(self) -> int:
        """Rows of the whole step."""
        return sum(map(sum, self.lengths))

    def gather(self, own: Tensor) -> Tensor:
        """The rows (n, ...) of all processes, without gradient, from those of this one."""
        if len(self.lengths) == 1:
            return own.detach()
        padded = own.new_zeros(max(map(sum, self.lengths)), *own.shape[1:])
        padded[: len(own)] = own.detach()
        split = [
            rows[: sum(of)].split(of)
            for rows, of in zip(_all_gather(padded), self.lengths, strict=True)
        ]
        return torch.cat([part for place in zip(*split, strict=True) for part in place])

    def own_slices(self) -> list[slice]:
        """Where the rows of each of this process's micro-batches are among all."""
        found, end = [], 0
        for place in zip(*self.lengths, strict=True):
            for process, number in enumerate(place):
                if process == self.rank:
                    found.append(slice(end, end + number))
                end += number
        return found


def gather_micro_batches(micro: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The rows of all processes in global order, of several columns, from own micro-batches."""
    own = [torch.cat(column) for column in zip(*micro, strict=True)]
    layout = StepLayout.exchange([len(columns[0]) for columns in micro], own[0].device)
    return tuple(map(layout.gather, own))


def sum_over_processes(tensor: Tensor) -> Tensor:
    """The sum of tensors of one shape over all processes."""
    if num_processes() > 1:
        dist.all_reduce(tensor)
    return tensor


def num_processes() -> int:
    """Processes of the run; 1 without a process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def _all_gather(tensor: Tensor) -> list[Tensor]:
    """The tensors of one shape of all processes."""
    found = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(found, tensor.contiguous())
    return found
