"""Numbers on their way from the device: asked for when they are made, read when they are wanted.

Reading a tensor of a GPU waits for everything that was sent there before, and a host that waits
sends nothing. So a step's losses are copied to pinned memory behind the step, a moment after them
is marked, and the host goes on; that moment alone is waited for, when the next step is on the
device too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class Moment:
    """A point of a device's own time: when it comes to it, not when the host says so."""

    def __init__(self, device: torch.device) -> None:
        self._event: torch.cuda.Event | None = None
        self._clock = time.perf_counter()  # a CPU has done what it was told
        if device.type == "cuda":
            self._event = torch.cuda.Event(enable_timing=True)
            self._event.record()

    def wait(self) -> None:
        """Wait until the device has come to it."""
        if self._event is not None:
            self._event.synchronize()

    def since(self, before: Moment) -> float:
        """Seconds from another moment of the same device; both must have come."""
        if self._event is not None and before._event is not None:
            milliseconds: float = before._event.elapsed_time(self._event)
            return milliseconds / 1000
        return self._clock - before._clock


def on_the_way(values: Tensor) -> Tensor:
    """The same numbers on the host, once the device has come to a later `Moment`."""
    if not values.is_cuda:
        return values
    host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    return host.copy_(values, non_blocking=True)
