"""Queue warm-up: before a stage's first step, queues that start filled get keys (InfoXLM).

The keys come from batches of the stage's own streams in an order of their own, so the training
data and its cursor are the same as without warm-up. No weight is trained. Filled queues are part
of every checkpoint of the stage, so a resumed run skips the warm-up.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from isoglot.batching.counter_rng import key_of
from isoglot.pretraining.runtime import any_process
from isoglot.pretraining.stage_data import make_loader
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.batching.mixture import OpenStream
    from isoglot.pretraining.build import RunContext
    from isoglot.pretraining.train_module import TrainModule
    from isoglot.pretraining.train_step import StageContext

_LINE_SECONDS = 15.0
"""Seconds between two lines of progress."""


@torch.no_grad()
def warm_up_queues(
    context: RunContext, stage: StageContext, opened: tuple[OpenStream, ...]
) -> None:
    """Draw whole steps until no objective needs more examples, or a process is asked to stop.

    Args:
        context: the run.
        stage: the stage about to start.
        opened: the stage's streams.
    """
    missing = _missing_examples(stage.module, stage.objectives)
    if not missing:
        return
    accelerator, seed = context.accelerator, key_of(stage.seed, "before the first step")
    loader = make_loader(context, opened, stage=stage.stage, seed=seed)
    steps, number, last_line = loader.steps(Cursor()), 0, float("-inf")
    while missing:
        if any_process(accelerator, stage.stop.requested):
            stage.stop.announce()
            return
        if time.monotonic() - last_line > _LINE_SECONDS:
            last_line = time.monotonic()
            left = ", ".join(f"{name} {count:,}" for name, count in missing.items())
            said = f"queue warm-up, keys still needed: {left}"
            context.console.print(said, highlight=False, soft_wrap=True)
        torch.manual_seed(key_of(seed, "fill", number, accelerator.process_index) >> 1)
        for batch in next(steps):
            with accelerator.autocast():
                stage.module(batch.to(accelerator.device), warm_up=missing)
        missing, number = _missing_examples(stage.module, missing), number + 1


@torch.no_grad()
def seconds_to_warm_up(
    context: RunContext, stage: StageContext, opened: tuple[OpenStream, ...]
) -> float:
    """The time that `warm_up_queues` will take, from its first step."""
    missing = _missing_examples(stage.module, stage.objectives)
    if not missing:
        return 0.0
    began = time.perf_counter()
    loader = make_loader(context, opened, stage=stage.stage, seed=stage.seed)
    for batch in next(loader.steps(Cursor())):
        with context.accelerator.autocast():
            stage.module(batch.to(context.accelerator.device), warm_up=missing)
    left = _missing_examples(stage.module, missing)
    taken = [1 - left.get(name, 0) / number for name, number in missing.items()]
    return (time.perf_counter() - began) / max(min(taken), 1e-6)


def _missing_examples(module: TrainModule, names: Iterable[str]) -> dict[str, int]:
    """The objectives that need examples before their first step, and how many."""
    found = {name: module.objective(name).num_warmup_examples() for name in names}
    return {name: number for name, number in found.items() if number}
