"""The momentum encoder and the queue of its keys. MoCo (He et al., 2020) section 3; PPA 2.1.

`MomentumEncoder` is an exponential moving average of a module, θk ← m θk + (1 - m) θq, updated
after every optimizer step in the weights' own precision (float32 in training). `Queue` holds keys
of earlier steps as negatives, first in, first out, the same on every process. Both are submodules,
so checkpoints hold them, and a resumed run sees the same negatives.

    before_forward   keys = momentum encoder(auxiliary rows)
    loss             queue.negatives(...), then queue.hold(keys)
    after_step       momentum encoder.update(), queue.enqueue_held()
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn
from typing_extensions import override

from isoglot.models.sharding import local_part
from isoglot.objectives.compared import Compared, StepModule
from isoglot.objectives.contrast.info_nce import NO_ITEM, Negatives
from isoglot.objectives.gathering import gather_micro_batches
from isoglot.ranges import NumSteps, Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.objectives.base import ForwardResult, LossSum


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentumConfig:
    """The momentum of a moving average."""

    value: Annotated[float, Range(0, 1, below=True)] = 0.999
    """The momentum m, from the end of its schedule on."""
    schedule: Literal["constant", "linear", "exponential"] = "constant"
    """`linear` and `exponential` (in 1 - m) go from `initial_value` to `value`."""
    initial_value: Annotated[float, Range(0, 1, below=True)] = 0.9
    """The momentum of the first step, unless the schedule is constant."""
    schedule_steps: NumSteps = 1000
    """Steps of the schedule."""

    def __post_init__(self) -> None:
        check_ranges(self)

    def at(self, step: int) -> float:
        """The momentum of a step, counted from 0."""
        first, last = self.initial_value, self.value
        done = min(step / self.schedule_steps, 1.0)
        if self.schedule == "linear":
            return first + (last - first) * done
        if self.schedule == "exponential":
            return float(1 - (1 - first) ** (1 - done) * (1 - last) ** done)
        return last


class MomentumEncoder(nn.Module):
    """A frozen copy of a module, updated as its moving average; called like the module."""

    num_updates: Tensor

    def __init__(self, original: nn.Module, settings: MomentumConfig) -> None:
        super().__init__()
        self.settings = settings
        self.module = copy.deepcopy(original).requires_grad_(requires_grad=False)
        # in a tuple, so that the original is no submodule: checkpoints hold it elsewhere
        self._original = (original,)
        self.register_buffer("num_updates", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def on_stage_start(self) -> None:
        """Copy the original's weights."""
        for own, original in zip(*self._weights(), strict=True):
            own.copy_(original)

    @torch.no_grad()
    def update(self) -> None:
        """One step of the moving average."""
        # reading the counter makes the host wait for the device
        constant = self.settings.schedule == "constant"
        momentum = self.settings.at(0 if constant else int(self.num_updates))
        own, original = self._weights()
        if any(one.dtype != other.dtype for one, other in zip(own, original, strict=True)):
            for one, other in zip(own, original, strict=True):  # bf16 weights, one at a time
                one.lerp_(other.to(one.dtype), 1 - momentum)
        elif own:
            get_ema_multi_avg_fn(momentum)(own, original, self.num_updates)
        self.num_updates += 1

    def _weights(self) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """Of both, the parts that this process holds."""
        (original,) = self._original
        own, theirs = self.module.parameters(), original.parameters()
        return [local_part(one.detach()) for one in own], [local_part(one) for one in theirs]

    @override
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return self.module(*args, **kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """The number of keys, and what a queue holds before it is full."""

    size: Annotated[int, Range(0, 2**24)] = 32_000
    """Keys kept; 0 means no queue."""
    start: Literal["random", "empty", "filled"] = "random"
    """Random vectors (MoCo), nothing, or keys encoded before the first step (InfoXLM)."""

    def __post_init__(self) -> None:
        check_ranges(self)


class Queue(nn.Module):
    """A ring buffer of keys.

    The keys of a step are held until its end and enqueued together, in global order: however a
    step is split into micro-batches and processes, its queries see keys of earlier steps only.
    """

    entries: Tensor
    items: Tensor
    pointer: Tensor
    num_filled: Tensor

    def __init__(self, settings: QueueConfig, dimension: int, *, num_items: int) -> None:
        """Random entries of norm about 1; `num_items` is the number of items of a key."""
        super().__init__()
        self.settings = settings
        size = settings.size
        self.register_buffer("entries", torch.randn(size, dimension) / dimension**0.5)
        self.register_buffer("items", torch.full((size, num_items), NO_ITEM))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.int64))
        self.register_buffer("num_filled", torch.zeros((), dtype=torch.int64))
        self._held: list[tuple[Tensor, Tensor]] = []
        """The keys of this process's micro-batches in this step."""
        self._held_step: tuple[Tensor, Tensor] | None = None
        """Or those of the whole step, where they are compared with each other."""

    def negatives(self, num_queries: int) -> Negatives:
        """The entries as candidates for queries."""
        places = torch.arange(self.settings.size, device=self.entries.device)
        missing = places >= self.num_filled
        if self.settings.start == "random":
            missing = torch.zeros_like(missing)
        return Negatives(
            vectors=self.entries, items=self.items, excluded=missing.expand(num_queries, -1)
        )

    def on_stage_start(self) -> None:
        """Drop the keys of an earlier encoder, unless a queue may start with random ones."""
        if self.settings.start != "random":
            self.pointer.zero_()
            self.num_filled.zero_()

    def num_warmup_examples(self) -> int:
        """Keys to enqueue before the first step (`start: filled`); waits for the device."""
        if self.settings.start != "filled":
            return 0
        return self.settings.size - int(self.num_filled)

    def hold(self, keys: Tensor, items: Tensor) -> None:
        """Keep a micro-batch's keys until the end of the step; not in validation."""
        if self.training:
            self._held.append((keys.detach(), items))

    def hold_none(self) -> None:
        """A micro-batch without keys; other processes may have some, and gather from all."""
        self.hold(self.entries[:0], self.items[:0])

    def hold_step(self, keys: Tensor, items: Tensor) -> None:
        """Keep the keys of all micro-batches and processes until the end of the step."""
        if self.training:
            self._held_step = (keys.detach(), items)

    def enqueue_held(self, *, taken: bool) -> None:
        """At the end of a step, enqueue the keys of all processes; drop them if it was skipped."""
        held, self._held = self._held, []
        of_step, self._held_step = self._held_step, None
        if taken:
            self.enqueue(*(of_step or gather_micro_batches(held)))

    @torch.no_grad()
    def enqueue(self, keys: Tensor, items: Tensor) -> None:
        """Replace the oldest entries by keys (n, D) of all processes, with item numbers (n, S)."""
        size, number = self.settings.size, len(keys)
        beyond = max(number - size, 0)
        places = torch.arange(beyond, number, device=self.entries.device)
        places = (self.pointer + places) % size
        self.entries.index_copy_(0, places, keys[beyond:].to(self.entries.dtype))
        self.items.index_copy_(0, places, items[beyond:])
        self.pointer.copy_((self.pointer + number) % size)
        self.num_filled.copy_((self.num_filled + number).clamp(max=size))


class QueueModule(StepModule):
    """The model half of a contrastive objective, which may have a queue of keys."""

    queue: Queue | None

    @override
    def on_stage_start(self) -> None:
        if self.queue is not None:
            self.queue.on_stage_start()

    @override
    def after_step(self, *, taken: bool) -> None:
        if self.queue is not None:
            self.queue.enqueue_held(taken=taken)

    def hold(self, keys: Tensor, items: Tensor, examples: Compared) -> None:
        """Keep the keys of examples for the queue until the step ends."""
        if self.queue is None:
            return
        if examples.whole_step:
            self.queue.hold_step(keys, items)
        else:
            self.queue.hold(keys, items)

    def empty_loss(self, result: ForwardResult) -> LossSum:
        """The loss of a micro-batch without draws, which holds no keys."""
        if self.queue is not None:
            self.queue.hold_none()
        return result.empty_loss("accuracy", "chance")
