"""One optimizer step, top to bottom: draw, count, forward, backward, clip, update, enqueue, record.

    loader --draw--> micro-batches --count targets--> forward + backward, each --> clip --> update
                                                                                  --> StepResult

`training_steps` is a generator of finished steps; checkpoints, validation and metrics listen to
what it yields (`run.py`).

Exact accumulation: the targets of the whole step are counted before the first forward pass, over
all micro-batches and processes, and every micro-batch's loss sum is divided by that count. The
gradient therefore does not depend on how a step is split.

Asynchronous host: on a GPU the host launches step n + 1 before it reads the losses of step n.
Whether the update of a step with a non-finite loss is skipped is decided on the device. The host
waits for a step only where its weights are needed (`StepSchedule.needs_sync`), where the optimizer
cannot skip an update on the device (LAMB), where an objective must know about a skip before it
updates its queue, and, with several processes, for the exchange of target counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from isoglot.batching.counter_rng import key_of
from isoglot.models.cpu_memory import freed_memory_kept
from isoglot.objectives.base import Objective, ObjectiveModule
from isoglot.pretraining.accumulation import COUNT, accumulate
from isoglot.pretraining.config import LossConfig
from isoglot.pretraining.optimizers.optimizer import (
    OptimizerConfig,
    learning_rate,
    set_learning_rate,
    skip_update_if,
    supports_device_skip,
)
from isoglot.pretraining.processes.distributed import (
    DistributedConfig,
    clip_gradients,
    fill_gradients,
)
from isoglot.pretraining.processes.interruptions import StopSignal
from isoglot.pretraining.runtime import (
    DeviceEvent,
    StepSchedule,
    any_process_each,
    gc_frozen,
    nonfinite_error,
    to_host_async,
)
from isoglot.pretraining.train_module import TrainModule
from isoglot.types import Batch, Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accelerate import Accelerator


@dataclass(slots=True, kw_only=True)
class StageContext:
    """What stays the same over the steps of one stage."""

    module: TrainModule
    """The encoder and the objectives' modules."""
    wrapped: torch.nn.Module
    """The same module, wrapped in DDP or sharded where there are several processes."""
    optimizer: torch.optim.Optimizer
    optimizer_config: OptimizerConfig
    loss: LossConfig
    distributed: DistributedConfig = field(default_factory=DistributedConfig)
    objectives: Mapping[str, Objective]
    """The objectives that the stage trains, with their loss weights."""
    steps: int
    """Steps of the stage."""
    seed: int
    stage: int = 0
    """Index of the stage."""
    schedule: StepSchedule | None = None
    """None: the weights of every step are needed."""
    stop: StopSignal = field(default_factory=StopSignal)
    """Asked before every step; the stage ends early once a process has been asked to stop."""
    save_failed: Callable[[], bool] = lambda: False
    """Asked before every step, too: could a checkpoint not be written? Then the stage ends."""
    dump_folder: Path | None = None
    """Where a batch with a non-finite loss is written."""

    def modules(self) -> list[ObjectiveModule]:
        """The modules of the stage's objectives."""
        return [self.module.objective(name) for name in self.objectives]

    def update_average(self, step: int) -> None:
        """Move the average of the weights, if there is one, after a step, from 0."""
        if self.module.average is not None:
            self.module.average.update(step)

    def needs_sync(self, step: int) -> bool:
        """Are the weights of this step (from 1) needed before the next one is launched?"""
        return self.schedule is None or self.schedule.needs_sync(step)


@dataclass(slots=True, kw_only=True)
class StepResult:
    """One optimizer step that has been taken."""

    step: int
    """Steps taken in this stage, this one included."""
    losses: dict[str, float]
    """Mean loss of each objective."""
    metrics: dict[str, float]
    """Means of the objectives' other sums: `mlm/accuracy`, ..."""
    counts: dict[str, int]
    """Number of targets of each objective: what each mean is over."""
    learning_rate: float
    gradient_norm: float
    num_tokens: int
    """Tokens of the main rows in this step, over all processes, without padding."""
    seconds: float
    skipped: bool
    """The update was skipped because a loss or the gradient was not finite."""
    cursor: Cursor
    """Where the data continues."""


@dataclass(slots=True, kw_only=True)
class _LaunchedStep:
    """A step that has been sent to the device and whose numbers have not been read yet."""

    step: int
    micro_batches: list[Batch]
    counts: dict[str, int]
    num_tokens: int
    learning_rate: float
    host_start: float
    """Host clock, in seconds."""
    device_start: DeviceEvent
    device_end: DeviceEvent = field(init=False)
    """Device clock: from the end of the step before to the arrival of the next step's data."""
    names: list[str]
    """Names of the sums of losses and metrics."""
    numbers: Tensor
    """These sums and the gradient norm, on the host once `device_end` has passed."""
    complete: bool
    """The update (or its skip) and the objectives' `after_step` are on the device already."""


def training_steps(
    context: StageContext,
    batches: Iterator[list[Batch]],
    accelerator: Accelerator,
    *,
    done: int = 0,
) -> Iterator[StepResult]:
    """Train from step `done` to the stage's last step, or until a process is asked to stop."""
    with gc_frozen() as freeze_again, freed_memory_kept(accelerator.device):
        for result in _steps(context, batches, accelerator, done):
            if result.step == done + 1:
                freeze_again()  # objects made by compilation in the first step
            yield result


def _steps(
    context: StageContext, batches: Iterator[list[Batch]], accelerator: Accelerator, done: int
) -> Iterator[StepResult]:
    device = accelerator.device
    prefetched: list[Batch] | None = None
    previous: _LaunchedStep | None = None
    device_start = DeviceEvent(device)
    for step in range(done, context.steps):
        flags = context.stop.requested, context.save_failed()
        stops, fails = any_process_each(accelerator, *flags)
        if stops and not fails:
            context.stop.announce()
        if stops or fails:
            break
        if previous is None:
            device_start = DeviceEvent(device)
        host_start = time.perf_counter()
        micro_batches = prefetched or _to_device(device, next(batches))
        launched = _launch(context, micro_batches, step, accelerator, host_start, device_start)
        # while the device works on this step, the next step's data is copied there
        prefetched = _to_device(device, next(batches)) if step + 1 < context.steps else None
        launched.device_end = device_start = DeviceEvent(device)
        if previous is not None:  # one step late: the device has its next step already
            yield _finish(context, previous, accelerator)
        previous = launched
        if not launched.complete or context.needs_sync(step + 1):
            yield _finish(context, previous, accelerator)
            previous = None
    if previous is not None:
        yield _finish(context, previous, accelerator)


def _to_device(device: torch.device, micro_batches: list[Batch]) -> list[Batch]:
    """Copy a step's micro-batches to the device; from pinned memory the copy is asynchronous."""
    return [batch.to(device) for batch in micro_batches]


def _launch(
    context: StageContext,
    micro_batches: list[Batch],
    step: int,
    accelerator: Accelerator,
    host_start: float,
    device_start: DeviceEvent,
) -> _LaunchedStep:
    """Send one step (from 0) to the device."""
    # 1. count the targets of the whole step, over micro-batches and processes
    counts, num_tokens = global_counts(micro_batches, list(context.objectives), accelerator)
    # 2. dropout is a function of the seed and the step; so is the learning rate
    torch.manual_seed(key_of(context.seed, context.stage, step, accelerator.process_index) >> 1)
    rate = learning_rate(context.optimizer_config, step, context.steps)
    set_learning_rate(context.optimizer, rate)
    # 3. forward and backward of every micro-batch
    sums = accumulate(context, micro_batches, counts, step, accelerator)
    # 4. clip the gradient
    weights = [weight for group in context.optimizer.param_groups for weight in group["params"]]
    limit = context.optimizer_config.max_grad_norm
    fill_gradients(weights)
    norm = clip_gradients(weights, limit if limit is not None else float("inf"))
    numbers = torch.stack([*sums.values(), norm.double()])
    # 5. update the weights; a non-finite number skips the update on the device
    complete = supports_device_skip(context.optimizer)
    if complete:
        with skip_update_if(context.optimizer, ~numbers.isfinite().all()):
            context.optimizer.step()
        context.update_average(step)
        # `after_step` must know whether the update was skipped, which the host learns in `_finish`;
        # a run that stops at a non-finite number keeps nothing of that step, so it need not know
        complete = context.loss.not_finite == "stop" or not any(
            map(_overrides_after_step, context.modules())
        )
    # 6. update momentum encoders and queues
    if complete:
        for module in context.modules():
            module.after_step(taken=True)
    # 7. copy the losses to the host, to be read by `_finish`
    return _LaunchedStep(
        step=step,
        micro_batches=micro_batches,
        counts=counts,
        num_tokens=num_tokens,
        learning_rate=rate,
        host_start=host_start,
        device_start=device_start,
        names=list(sums),
        numbers=to_host_async(numbers),
        complete=complete,
    )


def _overrides_after_step(module: ObjectiveModule) -> bool:
    """Does an objective do anything after a step?"""
    return type(module).after_step is not ObjectiveModule.after_step


def global_counts(
    micro_batches: list[Batch], names: list[str], accelerator: Accelerator
) -> tuple[dict[str, int], int]:
    """The number of targets of each objective in this step, and its tokens, over all processes."""
    numbers = [sum(batch.num_targets.get(name, 0) for batch in micro_batches) for name in names]
    numbers.append(sum(batch.num_tokens for batch in micro_batches))
    if accelerator.num_processes > 1:
        numbers = accelerator.reduce(torch.tensor(numbers, device=accelerator.device)).tolist()
    return dict(zip(names, numbers[:-1], strict=True)), numbers[-1]


def _finish(context: StageContext, launched: _LaunchedStep, accelerator: Accelerator) -> StepResult:
    """Wait for a step's numbers and report the step.

    What must not happen after a non-finite number, and cannot be skipped on the device, is done
    here: the update of LAMB, and the queues of a run that goes on after a skipped step.
    """
    launched.device_end.wait()
    *values, norm = launched.numbers.tolist()
    means = _means(dict(zip(launched.names, values, strict=True)), launched.counts)
    finite = math.isfinite(norm) and all(map(math.isfinite, values))
    if not finite and context.loss.not_finite == "stop":
        raise nonfinite_error(
            launched.step + 1,
            means,
            launched.micro_batches,
            context.dump_folder,
            rank=accelerator.process_index,
        )
    if not supports_device_skip(context.optimizer):
        if finite:
            context.optimizer.step()
        context.update_average(launched.step)
    if launched.complete:
        seconds = launched.device_end.since(launched.device_start)
    else:
        for module in context.modules():
            module.after_step(taken=finite)
        seconds = time.perf_counter() - launched.host_start
    cursor = launched.micro_batches[0].cursor
    assert cursor is not None
    return StepResult(
        step=launched.step + 1,
        losses={
            name: means[f"{name}/loss"] for name in context.objectives if f"{name}/loss" in means
        },
        metrics={name: mean for name, mean in means.items() if not name.endswith("/loss")},
        counts=launched.counts,
        learning_rate=launched.learning_rate,
        gradient_norm=norm,
        num_tokens=launched.num_tokens,
        seconds=seconds,
        skipped=not finite,
        cursor=cursor,
    )


def _means(sums: dict[str, float], counts: dict[str, int]) -> dict[str, float]:
    """Each sum divided by its own count if it has one, else by its objective's target count."""
    means = {}
    for name, value in sums.items():
        count = sums.get(f"{name}{COUNT}", counts[name.split("/")[0]])
        if count and not name.endswith(COUNT):
            means[name] = value / count
    return means
