"""The training loop: a generator of steps. Everything else listens to what it yields.

One step draws all its micro-batches first, so that its gradient is the same however it is split
(`accumulation.py`). The model's own randomness (dropout) is seeded at every step.

The host does not wait for a step before it sends the next: whether the update is to be left out,
because something is not finite, is decided on the device, and losses are read one step late. It
does wait where somebody looks at the weights (`Stage.looks`), for optimizers that cannot leave an
update out by themselves (LAMB), for objectives that must hear whether a step was skipped before
they do what they do between steps, and, with several processes, when these tell each other how much
they predict.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from isoglot.batching.permutation import key_of
from isoglot.objectives import ObjectiveModule
from isoglot.pretrain.accumulation import accumulate, global_counts, means_of
from isoglot.pretrain.collector import little_to_collect
from isoglot.pretrain.not_finite import not_finite
from isoglot.pretrain.optim import (
    learning_rate,
    leave_out_if,
    set_learning_rate,
    skips_by_itself,
)
from isoglot.pretrain.readback import Moment, on_the_way
from isoglot.pretrain.stage import Stage, Step
from isoglot.types import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accelerate import Accelerator


@dataclass(slots=True, kw_only=True)
class _Launched:
    """A step that has been sent to the device, and what is to be told of it."""

    step: int
    micro: list[Batch]
    counts: dict[str, int]
    tokens: int
    rate: float
    started: float
    """By the host's clock."""
    begun: Moment
    ended: Moment = field(init=False)
    """By the device's, from the end of the one before, if it was not waited for, to the next one's
    data, which may be waited for."""
    names: list[str]
    """Of the sums of losses and metrics."""
    numbers: Tensor
    """The sums, and the gradient's norm, on the host when it has ended."""
    settled: bool
    """All of it is on the device: the update, or that it is left out, and what objectives do."""


def training_steps(
    stage: Stage, batches: Iterator[list[Batch]], accelerator: Accelerator, *, done: int = 0
) -> Iterator[Step]:
    """Train from step `done` to the stage's last one, or until some process is asked to stop."""
    with little_to_collect() as set_aside:
        for step in _steps(stage, batches, accelerator, done):
            if step.step == done + 1:
                set_aside()  # what it compiled
            yield step


def _steps(
    stage: Stage, batches: Iterator[list[Batch]], accelerator: Accelerator, done: int
) -> Iterator[Step]:
    device = accelerator.device
    following: list[Batch] | None = None
    ahead: _Launched | None = None
    begun = Moment(device)
    for step in range(done, stage.steps):
        if anyone(accelerator, stage.stopping()):
            break
        if ahead is None:
            begun = Moment(device)
        started = time.perf_counter()
        micro = following or _on(device, next(batches))
        launched = _launch(stage, micro, step, accelerator, started, begun)
        # while the device is busy with this step, the next one's data is sent there
        following = _on(device, next(batches)) if step + 1 < stage.steps else None
        launched.ended = begun = Moment(device)
        if ahead is not None:
            yield _finish(stage, ahead, accelerator)
        ahead = launched
        if not launched.settled or stage.looks(step + 1):
            yield _finish(stage, ahead, accelerator)
            ahead = None
    if ahead is not None:
        yield _finish(stage, ahead, accelerator)


def anyone(accelerator: Accelerator, asked: bool) -> bool:  # noqa: FBT001
    """Was any process asked to stop? All of them stop at the same step, or none."""
    if accelerator.num_processes == 1:
        return asked
    return bool(accelerator.reduce(torch.tensor(int(asked), device=accelerator.device)))


def _on(device: torch.device, micro: list[Batch]) -> list[Batch]:
    """A step's micro-batches on their way to a device: from pinned memory nobody waits for it."""
    return [batch.to(device) for batch in micro]


def _launch(
    stage: Stage,
    micro: list[Batch],
    step: int,
    accelerator: Accelerator,
    started: float,
    begun: Moment,
) -> _Launched:
    """Send a step to the device: accumulate and clip, and update if that needs no one's word."""
    names = list(stage.weights)
    counts, tokens = global_counts(micro, names, accelerator)
    torch.manual_seed(key_of(stage.seed, stage.number, step, accelerator.process_index) >> 1)
    rate = learning_rate(stage.optimizer_config, step, stage.steps)
    set_learning_rate(stage.optimizer, rate)
    sums = accumulate(stage, micro, counts, step, accelerator)
    weights = [weight for group in stage.optimizer.param_groups for weight in group["params"]]
    limit = stage.optimizer_config.clip
    norm = torch.nn.utils.clip_grad_norm_(weights, limit if limit is not None else float("inf"))
    numbers = torch.stack([*sums.values(), norm.double()])
    settled = skips_by_itself(stage.optimizer)
    if settled:
        with leave_out_if(stage.optimizer, ~numbers.isfinite().all()):
            stage.optimizer.step()
        # a run that stops at a bad step keeps nothing of it, so nobody must wait for the word
        settled = stage.loss.not_finite == "stop" or not any(map(_acts, _objectives(stage)))
    if settled:
        for objective in _objectives(stage):
            objective.after_step(taken=True)
    return _Launched(
        step=step,
        micro=micro,
        counts=counts,
        tokens=tokens,
        rate=rate,
        started=started,
        begun=begun,
        names=list(sums),
        numbers=on_the_way(numbers),
        settled=settled,
    )


def _objectives(stage: Stage) -> list[ObjectiveModule]:
    return [stage.trainee.objective(name) for name in stage.weights]


def _acts(objective: ObjectiveModule) -> bool:
    """Has an objective something to do after a step?"""
    return type(objective).after_step is not ObjectiveModule.after_step


def _finish(stage: Stage, launched: _Launched, accelerator: Accelerator) -> Step:
    """Wait for a step's numbers, do what is still to be done, and tell of it."""
    launched.ended.wait()
    *values, length = launched.numbers.tolist()
    means = means_of(dict(zip(launched.names, values, strict=True)), launched.counts)
    finite = math.isfinite(length) and all(map(math.isfinite, values))
    if not finite and stage.loss.not_finite == "stop":
        raise not_finite(
            launched.step + 1, means, launched.micro, stage.dump, rank=accelerator.process_index
        )
    if finite and not skips_by_itself(stage.optimizer):
        stage.optimizer.step()
    if launched.settled:
        seconds = launched.ended.since(launched.begun)
    else:
        for objective in _objectives(stage):
            objective.after_step(taken=finite)
        seconds = time.perf_counter() - launched.started
    cursor = launched.micro[0].cursor
    assert cursor is not None
    return Step(
        step=launched.step + 1,
        losses={name: means[f"{name}/loss"] for name in stage.weights if f"{name}/loss" in means},
        metrics={name: mean for name, mean in means.items() if not name.endswith("/loss")},
        counts=launched.counts,
        learning_rate=launched.rate,
        gradient_norm=length,
        num_tokens=launched.tokens,
        seconds=seconds,
        skipped=not finite,
        cursor=cursor,
    )
