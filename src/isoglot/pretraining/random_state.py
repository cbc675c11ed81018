"""Torch's random state, kept and restored: the same dropout in two passes over a micro-batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class RandomState:
    """The state of torch's generators, of the host and of one device; no copy waits for it."""

    device: torch.device
    of_host: Tensor
    of_device: Tensor | None

    @classmethod
    def now(cls, device: torch.device) -> RandomState:
        """The present state."""
        cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
        return cls(device, torch.get_rng_state(), cuda)

    def restore(self) -> None:
        """Draw from here again what was drawn after it."""
        torch.set_rng_state(self.of_host)
        if self.of_device is not None:
            torch.cuda.set_rng_state(self.of_device, self.device)
