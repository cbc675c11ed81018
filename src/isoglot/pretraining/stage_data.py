"""The data of a stage: its streams opened, its number of steps, and its batches."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from isoglot.batching.loader import Loader, check_shape, describe_dropped, open_streams
from isoglot.batching.mixture import Mixture
from isoglot.batching.padded import build_planner
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.batching.mixture import OpenStream
    from isoglot.batching.planner import BatchConfig
    from isoglot.corpus import Corpus
    from isoglot.objectives.base import Objective
    from isoglot.pretraining.build import RunContext
    from isoglot.pretraining.config import StageConfig

_STEPS_PLANNED = 64
"""Steps that are planned to count the draws of a step."""


def open_stage(context: RunContext, stage: int) -> tuple[OpenStream, ...]:
    """Open the streams of a stage; examples that they leave out are reported."""
    row_length = context.config.batch.row_length
    streams = context.config.stages[stage].streams
    opened = open_streams(context.corpus, streams, context.objectives, row_length=row_length)
    for note in describe_dropped(opened, row_length):
        context.warn(note)
    return opened


def make_loader(
    context: RunContext, opened: tuple[OpenStream, ...], *, stage: int, seed: int
) -> Loader:
    """This process's batches of opened streams."""
    pad_targets = context.config.batch.pad_targets
    on_gpu = context.accelerator.device.type == "cuda"
    return Loader(
        context.corpus,
        opened,
        context.config.batch,
        seed=seed,
        stage=stage,
        rank=context.accelerator.process_index,
        world=context.accelerator.num_processes,
        workers=context.config.loader,
        pad_targets=on_gpu if pad_targets is None else pad_targets,
        pin_memory=on_gpu,
    )


def num_steps(
    stage: StageConfig,
    corpus: Corpus,
    objectives: Mapping[str, Objective],
    shape: BatchConfig,
    *,
    seed: int,
    number: int,
) -> int:
    """The steps of a stage: its `steps`, the steps that its `epochs` take, or the smaller of both.

    An epoch is as many draws as the streams have examples. How many draws a step of packed rows
    holds depends on their lengths, so the first 64 steps are planned and counted. The result
    depends on the recipe and the corpus alone, not on devices or processes.

    Args:
        stage: its settings.
        corpus: what it draws from.
        objectives: the objectives of the run, by name.
        shape: rows and row length of a step.
        seed: the run's seed.
        number: index of the stage.
    """
    if stage.epochs is None:
        assert stage.steps is not None
        return stage.steps
    opened = open_streams(corpus, stage.streams, objectives, row_length=shape.row_length)
    check_shape(shape, 1, opened)
    mixture = Mixture(opened, seed=seed, stage=number)
    planner = build_planner(mixture, shape, target_capacity=None)
    *_, last = itertools.islice(planner.steps(Cursor()), _STEPS_PLANNED)
    cursor = last[0].cursor
    draws_per_step = (cursor.draws - len(cursor.pending)) / _STEPS_PLANNED
    examples = sum(one.num_examples for one in mixture.components)
    steps = max(1, round(stage.epochs * examples / draws_per_step))
    return steps if stage.steps is None else min(steps, stage.steps)
