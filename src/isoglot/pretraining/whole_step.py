"""What a pass over a micro-batch is asked for, and gives, where a loss needs the whole step.

    WholeStep --TrainModule.forward--> PartialLosses: losses of the other objectives, pooled states

With several micro-batches each is encoded twice (`accumulation.py`), with the same dropout: the
first pass keeps torch's random states, and the second restores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.utils import _pytree

from isoglot.objectives.base import LossSum
from isoglot.objectives.compared import Compared


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeStep:
    """Asks a pass over a micro-batch for pooled states in the place of some objectives' losses.

    These objectives compare the examples of a whole step (in-batch negatives), so their loss is
    computed once, from the states of all micro-batches (`accumulation.py`).
    """

    names: Sequence[str]
    """These objectives."""
    states_only: bool = False
    """Only their states, and no losses of others: the first of two passes."""
    random: tuple[RandomState, RandomState] | None = None
    """In the second of two passes, the random states of the first, before and after the
    objectives' own passes (`before_forward`): both passes then have the same dropout."""


@dataclass(slots=True, kw_only=True)
class PartialLosses:
    """The losses of a micro-batch without those that need the whole step."""

    losses: dict[str, LossSum]
    compared: dict[str, Compared]
    """The pooled states of the others."""
    zero: Tensor
    """0, with a gradient of zero for every weight: DDP waits for all of them."""
    random: tuple[RandomState, RandomState]
    """For a second pass (`WholeStep.random`)."""

    def without_graph(self) -> PartialLosses:
        """The same without what the forward pass keeps for a backward pass."""
        compared = {name: one.detach() for name, one in self.compared.items()}
        return replace(self, compared=compared, zero=self.zero.detach())


# as for `LossSum`: FSDP finds the tensors in what a module gives
_pytree.register_dataclass(PartialLosses, field_names=["losses", "compared", "zero", "random"])
