"""Keys of earlier steps, kept as candidates: first in, first out, the same on every process.

The keys of a step are held until its end and pushed together, in global order: however a step is
split into micro-batches and processes, its queries meet the keys of earlier steps and no others.
Entries, what they are, the place of the next one and how many were ever filled are buffers, so that
checkpoints hold them and a resumed run meets the same negatives. MoCo (He et al., 2020) section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from isoglot.errors import require
from isoglot.objectives.contrast.gather import gathered
from isoglot.objectives.contrast.items import NO_ITEM
from isoglot.objectives.contrast.negatives import Negatives


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """How many keys are kept, and what stands for those that are not there yet."""

    size: int = 32_000
    """Keys kept; 0 means no queue."""
    start: Literal["random", "empty", "filled"] = "random"
    """Random vectors (MoCo), nothing, or keys that are encoded before the first step (InfoXLM)."""

    def __post_init__(self) -> None:
        require(self.size >= 0, "queue.size must not be negative")


class Queue(nn.Module):
    """A ring of keys."""

    entries: Tensor
    items: Tensor
    pointer: Tensor
    filled: Tensor

    def __init__(self, settings: QueueConfig, dimension: int, *, numbers: int) -> None:
        """Random entries of norm about 1, drawn from torch's own generator.

        Args:
            settings: size, and what stands for missing keys.
            dimension: of a key.
            numbers: how many numbers say what a key is.
        """
        super().__init__()
        self.settings = settings
        size = settings.size
        self.register_buffer("entries", torch.randn(size, dimension) / dimension**0.5)
        self.register_buffer("items", torch.full((size, numbers), NO_ITEM))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.int64))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))
        self._held: list[tuple[Tensor, Tensor]] = []

    def negatives(self, num_queries: int) -> Negatives:
        """The entries as candidates."""
        places = torch.arange(self.settings.size, device=self.entries.device)
        missing = places >= self.filled
        if self.settings.start == "random":
            missing = torch.zeros_like(missing)
        left_out = missing.expand(num_queries, -1)
        return Negatives(vectors=self.entries, items=self.items, left_out=left_out)

    def begin(self) -> None:
        """Leave out the keys of an encoder of old; where random ones are met, so may they be."""
        if self.settings.start != "random":
            self.pointer.zero_()
            self.filled.zero_()

    def wanting(self) -> int:
        """Keys that it must get before the first step; the host waits for the device."""
        if self.settings.start != "filled":
            return 0
        return self.settings.size - int(self.filled)

    def hold(self, keys: Tensor, items: Tensor) -> None:
        """Remember a micro-batch's keys, maybe none, until the step ends; not in validation."""
        if self.training:
            self._held.append((keys.detach(), items))

    def settle(self, *, taken: bool) -> None:
        """The step has ended: push what all processes held, or forget it if it was not taken."""
        held, self._held = self._held, []
        if taken:
            self.push(*gathered(held))

    @torch.no_grad()
    def push(self, keys: Tensor, items: Tensor) -> None:
        """Put keys in, oldest first, in the place of the oldest entries.

        Args:
            keys: (n, D), of all processes.
            items: (n, S) what they are.
        """
        size, number = self.settings.size, len(keys)
        beyond = max(number - size, 0)
        places = torch.arange(beyond, number, device=self.entries.device)
        places = (self.pointer + places) % size
        self.entries.index_copy_(0, places, keys[beyond:].to(self.entries.dtype))
        self.items.index_copy_(0, places, items[beyond:])
        self.pointer.copy_((self.pointer + number) % size)
        self.filled.copy_((self.filled + number).clamp(max=size))
