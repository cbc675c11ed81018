"""The gradient of a step, whatever micro-batches it is split into.

The number of things each objective predicts in the whole step, over all processes, is known before
the first pass; each micro-batch's sums are divided by it. Accumulation is therefore exact for
uneven micro-batches, and a gradient does not depend on how the step was split.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isoglot.objectives import LossSum
    from isoglot.pretrain.stage import LossConfig, Stage
    from isoglot.types import Batch

COUNT = " count"
"""Added to the name of a metric that is a mean over something of its own, names that count."""


def scales(
    config: LossConfig, weights: dict[str, float], counts: dict[str, int]
) -> dict[str, float]:
    """What to multiply each objective's sum of losses with, given the counts of the whole step."""
    if config.weighting == "sites":
        total = max(sum(counts.values()), 1)
        return {name: weight / total for name, weight in weights.items()}
    return {name: weight / max(counts[name], 1) for name, weight in weights.items()}


def global_counts(
    micro: list[Batch], names: list[str], accelerator: Accelerator
) -> tuple[dict[str, int], int]:
    """What each objective predicts in this step, and its tokens, over all processes."""
    numbers = [sum(batch.counts.get(name, 0) for batch in micro) for name in names]
    numbers.append(sum(batch.num_tokens for batch in micro))
    if accelerator.num_processes > 1:
        numbers = accelerator.reduce(torch.tensor(numbers, device=accelerator.device)).tolist()
    return dict(zip(names, numbers[:-1], strict=True)), numbers[-1]


def accumulate(
    stage: Stage, micro: list[Batch], counts: dict[str, int], step: int, accelerator: Accelerator
) -> dict[str, Tensor]:
    """Forward and backward of all micro-batches; gives the sums of losses and metrics.

    A metric that is a mean over something of its own has that count beside it, under its name with
    `COUNT` added.
    """
    factors = scales(stage.loss, {**stage.weights, **stage.weights_at(step)}, counts)
    sums: dict[str, Tensor] = {}
    stage.optimizer.zero_grad(set_to_none=True)
    for number, batch in enumerate(micro):
        last = number == len(micro) - 1
        with nullcontext() if last else accelerator.no_sync(stage.wrapped):
            with accelerator.autocast():
                found: dict[str, LossSum] = stage.wrapped(batch)
            # DDP takes the mean over processes, and counts are of all of them
            loss = sum(factors[name] * part.total for name, part in found.items())
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


def means_of(sums: dict[str, float], counts: dict[str, int]) -> dict[str, float]:
    """Each sum divided by its own count if it has one, else by its objective's; none over none."""
    means = {}
    for name, value in sums.items():
        count = sums.get(f"{name}{COUNT}", counts[name.split("/")[0]])
        if count and not name.endswith(COUNT):
            means[name] = value / count
    return means
