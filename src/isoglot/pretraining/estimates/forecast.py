"""What a run says about its length: passes over the data before its first step, then its speed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.pretraining.stage_data import describe_length
from isoglot.progress import duration
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from isoglot.batching.planner import Planner
    from isoglot.pretraining.build import RunContext
    from isoglot.pretraining.monitoring.writers import Record

MANY_PASSES = 10.0
"""A stream that is read more often is worth a warning."""
_LEAST_SHOWN = 0.1
"""Fewer passes are not told apart."""
_STEPS_PLANNED, _PLANNING_SECONDS = 64, 2.0
"""Steps that are planned to count their draws, at most, and for how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPasses:
    """How often the examples of a stream are read."""

    stage: int
    """From 0."""
    stream: str
    examples: int
    passes: float
    """Draws of the stage divided by examples."""
    most_read: str
    """The source and language that is read most often."""
    most_passes: float

    def read(self) -> str:
        """How often: `read 3.2 times (most: news/sw 12 times)`."""
        times, most = _times(self.passes), ""
        if self.most_passes > 1.5 * self.passes and _times(self.most_passes) != times:
            most = f" (most: {self.most_read} {_times(self.most_passes)})"
        return f"read {times}{most}"


def count_passes(
    planner: Planner, streams: Sequence[str], *, stage: int, steps: int
) -> list[StreamPasses]:
    """The passes of a stage over each of its streams, from the draws of its first steps."""
    began, cursor, planned = time.monotonic(), Cursor(), 0
    for plans in planner.steps(Cursor()):
        cursor, planned = plans[0].cursor, planned + 1
        late = time.monotonic() - began > _PLANNING_SECONDS
        if planned == min(steps, _STEPS_PLANNED) or late:
            break
    components = planner.mixture.components
    pending = [draw.component for draw in cursor.pending]
    placed = np.array(cursor.counters) - np.bincount(pending, minlength=len(components))
    draws = placed * (planner.num_rows(steps) / planner.num_rows(planned))
    found = []
    for number, name in enumerate(streams):
        own = [place for place, one in enumerate(components) if one.stream == number]
        examples = np.array([components[place].num_examples for place in own])
        passes = draws[own] / examples
        most = int(passes.argmax())
        found.append(
            StreamPasses(
                stage=stage,
                stream=name,
                examples=int(examples.sum()),
                passes=float(draws[own].sum() / examples.sum()),
                most_read=components[own[most]].name.partition("/")[2],
                most_passes=float(passes[most]),
            )
        )
    return found


def say_length(context: RunContext, planner: Planner, stage: int) -> None:
    """Print the steps of a stage and its passes over the data.

    Many passes are a warning, unless the run is part of a plan that has named them.
    """
    config, steps = context.config.stages[stage], context.num_steps[stage]
    if config.epochs is not None:
        context.console.print(describe_length(config, steps), highlight=False, soft_wrap=True)
    found = count_passes(planner, list(config.streams), stage=stage, steps=steps)
    context.console.print(describe_passes(found, steps), highlight=False, soft_wrap=True)
    if not context.part_of_plan and (note := many_passes_note(found)) is not None:
        context.warn(note, kind="warning")


def describe_passes(found: Sequence[StreamPasses], steps: int) -> str:
    """A line about a stage: its steps, and how often they read each stream."""
    number = "1 step" if steps == 1 else f"{steps:,} steps"
    read = ", ".join(f"{one.stream} {one.read()}" for one in found)
    return f"stage {found[0].stage + 1}: {number}, {read}"


def many_passes_note(found: Sequence[StreamPasses]) -> str | None:
    """A sentence where a stream is read very often."""
    often = [one for one in found if one.passes > MANY_PASSES]
    if not often:
        return None
    said = " and ".join(
        f"{one.stream} ({one.examples:,} examples) will be read {_times(one.passes)}"
        for one in often
    )
    stage = often[0].stage
    return (
        f"{said}: more than "
        f"{MANY_PASSES:g} passes seldom help. Set stages.{stage}.steps lower, or stages."
        f"{stage}.epochs, or add data."
    )


def _times(passes: float) -> str:
    if 0 < passes < _LEAST_SHOWN:
        return f"less than {_LEAST_SHOWN} times"
    return f"{passes:.1f} times" if passes < MANY_PASSES else f"{passes:,.0f} times"


_SKIPPED, _TIMED, _TIMED_SECONDS = 3, 20, 30.0
"""Steps that are not timed, steps that are, and seconds after which fewer are enough."""


class SpeedWriter:
    """Says once, after the first steps of each stage, how long the stage will take."""

    def __init__(self, console: Console, num_steps: Sequence[int]) -> None:
        self._console, self._num_steps = console, num_steps
        self._seconds: dict[int, list[float]] = {}

    def write(self, record: Record) -> None:
        """Look at the time of a step."""
        if "seconds" not in record:
            return
        stage = int(record["stage"])
        times = self._seconds.setdefault(stage, [])
        times.append(float(record["seconds"]))
        timed = times[_SKIPPED:]
        enough = len(timed) == _TIMED or (sum(timed) > _TIMED_SECONDS >= sum(timed[:-1]))
        if timed and enough and len(timed) <= _TIMED:
            one = sum(timed) / len(timed)
            steps = self._num_steps[stage]
            self._console.print(
                f"stage {stage + 1}: {one:.3g} s a step, about {duration(one * steps)} for its "
                f"{steps:,} steps; validation and checkpoints apart",
                highlight=False,
                soft_wrap=True,
            )
            times += [0.0] * _TIMED  # said

    def close(self) -> None:
        """Nothing to close."""
