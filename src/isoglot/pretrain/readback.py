"""Numbers on their way from the device: asked for when they are made, read when they are wanted.

Reading a tensor of a GPU waits for everything that was sent there before, and a host that waits
sends nothing. So a step's losses are copied to pinned memory behind the step, with an event after
them, and the host goes on; the event alone is waited for, when the next step is on the device too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class OnTheWay:
    """A vector of numbers that is being copied to the host."""

    def __init__(self, values: Tensor) -> None:
        self._event: torch.cuda.Event | None = None
        self._values = values
        if values.is_cuda:
            self._values = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            self._values.copy_(values, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()

    def read(self) -> list[float]:
        """The numbers, once they are there."""
        if self._event is not None:
            self._event.synchronize()
        found: list[float] = self._values.tolist()
        return found
