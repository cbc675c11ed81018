"""The forward and backward passes of one step: gradients of all micro-batches, summed.

The targets of the whole step are counted before (`train_step.py`), and every micro-batch's loss sum
is divided by that count, so the gradient does not depend on how a step is split.

Nor does it where an objective compares the examples of a whole step (in-batch negatives, batch
normalization). Such a step has three parts (GradCache: Gao et al., 2021):

    a  every micro-batch   forward without gradient    --> its pooled states, of all objectives
    b  once                states of all processes --> heads, loss --> gradient at the states
    c  every micro-batch   forward with the same dropout, backward: from the gradient at its states,
                           together with the losses of the objectives that compare nothing

With one micro-batch on a process, (a) is the forward pass of (c). With one micro-batch in a step,
the loss needs no parts at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from isoglot.objectives.base import LossSum
from isoglot.objectives.compared import GatheredStep, StepModule
from isoglot.pretraining.processes.distributed import gradient_exchange
from isoglot.pretraining.whole_step import WholeStep

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from accelerate import Accelerator

    from isoglot.objectives.compared import StepLoss
    from isoglot.pretraining.train_module import TrainModule
    from isoglot.pretraining.train_step import StageContext
    from isoglot.pretraining.whole_step import PartialLosses
    from isoglot.types import Batch

COUNT = " count"
"""Suffix of the count of a metric that is a mean over something other than the targets."""


def accumulate(
    context: StageContext,
    micro_batches: list[Batch],
    counts: dict[str, int],
    step: int,
    accelerator: Accelerator,
) -> dict[str, Tensor]:
    """Forward and backward of all micro-batches; returns the sums of losses and metrics.

    The count of a metric that is a mean over something else than targets is returned under the
    metric's name with `COUNT` added.
    """
    scales = loss_scales(context, counts, step)
    context.optimizer.zero_grad(set_to_none=True)
    compared = compared_over_step(context.module, context.objectives)
    if compared and len(micro_batches) * accelerator.num_processes > 1:
        found = _compared_passes(context, micro_batches, scales, compared, accelerator)
    else:
        found = _plain_passes(context, micro_batches, scales, accelerator)
    sums: dict[str, Tensor] = {}
    for name, part in found:
        values = {"loss": part.total, **part.metrics}
        for metric, (value, count) in part.ratios.items():
            values |= {metric: value, f"{metric}{COUNT}": count}
        for metric, value in values.items():
            key = f"{name}/{metric}"
            sums[key] = sums.get(key, 0) + value.detach().double()
    if accelerator.num_processes > 1:
        stacked = accelerator.reduce(torch.stack(list(sums.values())))
        sums = dict(zip(sums, stacked, strict=True))
    return sums


def compared_over_step(module: TrainModule, names: Iterable[str]) -> list[str]:
    """Of these objectives, those that compare the examples of a whole step."""
    found = {name: module.objective(name) for name in names}
    return [name for name, one in found.items() if isinstance(one, StepModule) and one.whole_step]


def loss_scales(context: StageContext, counts: dict[str, int], step: int) -> dict[str, float]:
    """The factor of each objective's loss sum, given the target counts of the whole step."""
    weights = {name: one.weight_at(step) for name, one in context.objectives.items()}
    if context.loss.weighting == "targets":
        total = max(sum(counts.values()), 1)
        return {name: weight / total for name, weight in weights.items()}
    return {name: weight / max(counts[name], 1) for name, weight in weights.items()}


def _plain_passes(
    context: StageContext,
    micro_batches: list[Batch],
    scales: dict[str, float],
    accelerator: Accelerator,
) -> list[tuple[str, LossSum]]:
    """Forward and backward of each micro-batch by itself; the losses, of each micro-batch."""
    losses: list[tuple[str, LossSum]] = []
    for number, batch in enumerate(micro_batches):
        with _exchange(context, last=number == len(micro_batches) - 1):
            with accelerator.autocast():
                found: dict[str, LossSum] = context.wrapped(batch)
            loss = sum(scales[name] * part.total for name, part in found.items())
            _backward(loss, accelerator)
        losses += _without_graph(found)
    return losses


def _compared_passes(
    context: StageContext,
    micro_batches: list[Batch],
    scales: dict[str, float],
    names: list[str],
    accelerator: Accelerator,
) -> list[tuple[str, LossSum]]:
    """Forward and backward where objectives compare the examples of the whole step."""
    # a. what every micro-batch compares
    only: PartialLosses | None = None
    if len(micro_batches) == 1:
        with accelerator.autocast():
            only = context.wrapped(micro_batches[0], whole_step=WholeStep(names=names))
        passes = [only]
    else:
        passes = _states_of(context, micro_batches, names, accelerator)
    # b. the loss of the whole step, and its gradient at the states
    steps = {name: GatheredStep.gather([one.compared[name] for one in passes]) for name in names}
    with _exchange(context, last=False), accelerator.autocast():
        found: dict[str, StepLoss] = context.wrapped(examples=steps)
    for one in found.values():
        one.sum_gradients()
    # c. its gradient at the weights, with those of the other losses
    rows = {name: one.layout.own_slices() for name, one in steps.items()}
    losses: list[tuple[str, LossSum]] = []
    for number, (batch, first) in enumerate(zip(micro_batches, passes, strict=True)):
        last = number == len(micro_batches) - 1
        with _exchange(context, last=last):
            part = only
            if part is None:
                again = WholeStep(names=names, random=first.random)
                with accelerator.autocast():
                    part = context.wrapped(batch, whole_step=again)
            for name in names:
                total = found[name].loss_at(part.compared[name], rows[name][number])
                part.losses[name] = LossSum(total=total)
            loss = sum(scales[name] * one.total for name, one in part.losses.items()) + part.zero
            if last:
                loss = loss + sum(scales[name] * found[name].weights_loss for name in names)
            _backward(loss, accelerator)
        losses += _without_graph(part.losses)
    return losses + [(name, one.loss) for name, one in found.items()]


def _states_of(
    context: StageContext, micro_batches: list[Batch], names: list[str], accelerator: Accelerator
) -> list[PartialLosses]:
    """What every micro-batch compares, without gradient, from a forward pass of its own."""
    asked, found = WholeStep(names=names, states_only=True), []
    # a compiled encoder is called as in (c): without gradient it would be compiled a second time
    with torch.set_grad_enabled(context.module.encoder.is_compiled):
        for batch in micro_batches:
            with _exchange(context, last=False), accelerator.autocast():
                one: PartialLosses = context.wrapped(batch, whole_step=asked)
            found.append(one.without_graph())
    return found


def _exchange(context: StageContext, *, last: bool) -> AbstractContextManager[None]:
    """Around a forward and backward pass: processes exchange gradients in the last one alone."""
    return gradient_exchange(context.wrapped, context.distributed, last=last)


def _backward(loss: Tensor | int, accelerator: Accelerator) -> None:
    # DDP and FSDP average gradients over processes, and the counts are those of all processes
    accelerator.backward(loss * accelerator.num_processes)


def _without_graph(losses: dict[str, LossSum]) -> list[tuple[str, LossSum]]:
    return [(name, replace(one, total=one.total.detach())) for name, one in losses.items()]
