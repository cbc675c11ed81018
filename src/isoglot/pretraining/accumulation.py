"""The forward and backward passes of one step: gradients of all micro-batches, summed.

The targets of the whole step are counted before (`train_step.py`), and every micro-batch's loss sum
is divided by that count, so the gradient does not depend on how a step is split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from isoglot.pretraining.distributed import gradient_exchange

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isoglot.objectives.base import LossSum
    from isoglot.pretraining.train_step import StageContext
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
    sums: dict[str, Tensor] = {}
    context.optimizer.zero_grad(set_to_none=True)
    for number, batch in enumerate(micro_batches):
        last = number == len(micro_batches) - 1
        with gradient_exchange(context.wrapped, context.distributed, last=last):
            with accelerator.autocast():
                found: dict[str, LossSum] = context.wrapped(batch)
            # gradients are averaged over processes, and the counts are those of all processes
            loss = sum(scales[name] * part.total for name, part in found.items())
            accelerator.backward(loss * accelerator.num_processes)
        for name, part in found.items():
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


def loss_scales(context: StageContext, counts: dict[str, int], step: int) -> dict[str, float]:
    """The factor of each objective's loss sum, given the target counts of the whole step."""
    weights = {name: one.weight_at(step) for name, one in context.objectives.items()}
    if context.loss.weighting == "targets":
        total = max(sum(counts.values()), 1)
        return {name: weight / total for name, weight in weights.items()}
    return {name: weight / max(counts[name], 1) for name, weight in weights.items()}
