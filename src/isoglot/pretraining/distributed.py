"""How the processes of a run share the model: settings of DDP, FSDP and HSDP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from isoglot.errors import require
from isoglot.ranges import Range, check_ranges

Strategy = Literal["ddp", "fsdp", "hsdp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedConfig:
    """How the processes of a run share the model."""

    strategy: Strategy = "ddp"
    """`ddp`: every process holds all weights; `fsdp`: weights, gradients and moments are split over
    all processes; `hsdp`: split over the processes of a group, each group holds all of them."""
    shard_processes: Annotated[int | None, Range(1, 2**16)] = None
    """Processes that share one copy of the weights under hsdp; none: the processes of a node."""
    timeout_minutes: Annotated[float, Range(0.1, 10_000)] = 30.0
    """How long a process waits for the others before the run ends with an error."""

    def __post_init__(self) -> None:
        check_ranges(self)
        require(
            self.shard_processes is None or self.strategy == "hsdp",
            "distributed.shard_processes is for distributed.strategy: hsdp. Leave it out, or set "
            "the strategy.",
        )
