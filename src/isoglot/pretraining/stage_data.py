"""The data of a stage: its streams opened, its number of steps, and its batches."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from isoglot.batching.dropped import describe_dropped
from isoglot.batching.loader import Loader, check_shape, open_streams
from isoglot.batching.mixture import Mixture
from isoglot.batching.padded import build_planner
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.languages import language_sides
from isoglot.objectives.camlm import SlotObjective
from isoglot.pretraining.config import objectives_of
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.batching.mixture import OpenStream
    from isoglot.batching.planner import BatchConfig
    from isoglot.corpus import Corpus
    from isoglot.objectives.base import Objective
    from isoglot.pretraining.build import RunContext
    from isoglot.pretraining.config import PretrainConfig, StageConfig

_STEPS_PLANNED = 64
"""Steps that are planned to count the draws of a step."""


def open_stage(context: RunContext, stage: int) -> tuple[OpenStream, ...]:
    """Open the streams of a stage; examples that they leave out are reported, once a run."""
    row_length = context.config.batch.row_length
    streams = context.config.stages[stage].streams
    opened = open_streams(context.corpus, streams, context.known_objectives, row_length=row_length)
    for note in describe_dropped(opened):
        if note.text not in context.told:
            context.told.add(note.text)
            context.warn(note.text, kind="warning" if note.is_warning else "note")
    return opened


def with_corpus_defaults(config: PretrainConfig, corpus: Corpus) -> PretrainConfig:
    """The recipe with what its streams leave to the corpus: target languages, and the order."""
    config = with_target_languages(config, corpus)
    if corpus.url is None:
        return config
    stages = [
        replace(
            stage,
            streams={
                name: replace(one, shuffle="blocks") if one.shuffle is None else one
                for name, one in stage.streams.items()
            },
        )
        for stage in config.stages
    ]
    return replace(config, stages=tuple(stages))


def describe_order(config: PretrainConfig, corpus: Corpus) -> str | None:
    """A sentence about the order in which a remote corpus is read, unless the recipe says it."""
    streams = [one for stage in config.stages for one in stage.streams.values()]
    if corpus.url is None or all(one.shuffle is not None for one in streams):
        return None
    return (
        f"{corpus.url} is not on this machine: its shards are read in the order `shuffle: blocks`, "
        "some shards at a time. `shuffle: examples` in a stream shuffles all of it, as a local "
        "corpus, and needs a cache that holds it all."
    )


def with_target_languages(config: PretrainConfig, corpus: Corpus) -> PretrainConfig:
    """The recipe with `target_languages` for streams of `btmlm` that name none.

    They are the languages of the pairs that `camlm` has read until then: where slots alone have
    language embeddings, no other language's is trained, and a slot could not tell what to generate.
    Without such pairs, or with `language_embeddings: all`, all languages stay.
    """
    if config.model.language_embeddings == "all":
        return config
    objectives = objectives_of(config)
    stages, trained = [], set[str]()
    for stage in config.stages:
        with_slots = {
            name: stream
            for name, stream in stage.streams.items()
            if any(isinstance(objectives[one], SlotObjective) for one in stream.objectives)
        }
        for stream in with_slots.values():
            if isinstance(stream, ParallelStream):
                pairs = [language for _, language in stream.selected(corpus)]
                trained.update(code for pair in pairs for code in language_sides(pair))
        targets = tuple(code for code in corpus.languages if code in trained)
        changed = {
            name: replace(stream, target_languages=targets)
            for name, stream in with_slots.items()
            if isinstance(stream, TextStream) and not stream.target_languages
        }
        stages.append(replace(stage, streams={**stage.streams, **changed}))
    return replace(config, stages=tuple(stages))


def describe_missing(config: PretrainConfig, corpus: Corpus) -> str | None:
    """A sentence about the languages that the recipe names and the corpus lacks, if any."""
    streams = [stream for stage in config.stages for stream in stage.streams.values()]
    missing = list(dict.fromkeys(c for one in streams for c in one.missing_languages(corpus)))
    if not missing:
        return None
    return (
        f"{corpus.folder} has nothing to read in {len(missing)} of the recipe's languages or "
        f"pairs, which are left out: {', '.join(missing)}."
    )


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
        schedules=context.config.stages[stage].schedules(context.num_steps[stage]),
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
        objectives: the objectives of the run, and those that streams name in `must_fit`.
        shape: rows and row length of a step.
        seed: the run's seed.
        number: index of the stage.
    """
    if stage.epochs is None:
        assert stage.steps is not None
        return stage.steps
    opened = open_streams(corpus, stage.streams, objectives, row_length=shape.row_length)
    check_shape(shape, 1, opened, stage.batch_warmup)
    mixture = Mixture(opened, seed=seed, stage=number)
    planner = build_planner(mixture, shape, target_capacity=None)
    *_, last = itertools.islice(planner.steps(Cursor()), _STEPS_PLANNED)
    cursor = last[0].cursor
    draws_per_step = (cursor.draws - len(cursor.pending)) / _STEPS_PLANNED
    examples = sum(one.num_examples for one in mixture.components)
    full_steps = stage.epochs * examples / draws_per_step
    steps = max(1, round(full_steps))
    if stage.batch_warmup is not None:
        steps = stage.batch_warmup.num_steps(full_steps * shape.rows, shape.rows)
    return steps if stage.steps is None else min(steps, stage.steps)


def describe_length(stage: StageConfig, steps: int) -> str:
    """A line about the steps of a stage that names `epochs`: which of both settings decided."""
    assert stage.epochs is not None
    if stage.steps is None:
        return f"epochs {stage.epochs:g}: {steps:,} steps"
    if steps < stage.steps:
        return f"epochs {stage.epochs:g}: {steps:,} steps, fewer than steps: {stage.steps:,}"
    return f"steps: {steps:,}; epochs: {stage.epochs:g} would take as many or more"
