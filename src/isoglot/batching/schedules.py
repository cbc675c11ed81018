"""What changes from step to step of a stage, each as a function of the step alone.

A loader computes these numbers from the step of a plan. So they are the same on every process and
in every loader worker, and a checkpoint needs no state of them.

    step --MaskingRate.at--> share of the tokens that MLM and TLM mask
    step --BatchWarmup.at--> rows of the step
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from isoglot.errors import RecipeError
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from isoglot.batching.mixture import OpenStream
    from isoglot.objectives.base import Objective


def linear(start: float, end: float, step: int, steps: int) -> float:
    """From `start` at step 0 in a straight line to `end` at the last of `steps` steps."""
    if steps <= 1:
        return start
    return start + (end - start) * min(step, steps - 1) / (steps - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingRate:
    """The masking rate of a stage's `mlm` and `tlm`, linear in the step.

    Wettig et al. (2023) found rates above 15 % better for larger models; Ankner et al. (2024) let
    the rate fall linearly from 30 % to 15 %; mmBERT (Marone et al., 2025) lowers it from stage to
    stage: 30 %, 15 %, 5 %.
    """

    start: Annotated[float, Range(0, 1, above=True)]
    """Share of the tokens that are predicted in the stage's first step."""
    end: Annotated[float | None, Range(0, 1, above=True)] = None
    """Share in its last step, which the rate approaches linearly; none: `start` throughout."""

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def highest(self) -> float:
        """The highest rate of the stage: room for targets is planned for it."""
        return self.start if self.end is None else max(self.start, self.end)

    def at(self, step: int, steps: int) -> float:
        """The rate in a step, from 0, of so many."""
        return self.start if self.end is None else linear(self.start, self.end, step, steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWarmup:
    """Batch-size warm-up: the first steps of a stage have fewer rows.

    A step has `start_rows`, later `increment` more, and so on up to `batch.rows`, each number for
    about as many steps: Megatron-LM's `rampup-batch-size` (Narayanan et al., 2021), which counts
    the warm-up in samples. ModernBERT (Warner et al., 2024) starts with a sixth of its rows.
    """

    start_rows: Annotated[int, Range(1, 2**17)]
    """Rows of the stage's first step."""
    increment: Annotated[int | None, Range(1, 2**17)] = None
    """Rows by which a step grows; none: `start_rows`."""
    steps: Annotated[int, Range(1, 10**7)]
    """Steps until `batch.rows` is reached."""

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def step_size(self) -> int:
        """Rows by which a step grows."""
        return self.start_rows if self.increment is None else self.increment

    def at(self, step: int, rows: int) -> int:
        """Rows of a step, from 0, where `batch.rows` is `rows`."""
        grows = (rows - self.start_rows) // self.step_size
        return self.start_rows + self.step_size * (min(step, self.steps) * grows // self.steps)

    def total(self, steps: int, rows: int) -> int:
        """Rows of the first `steps` steps together."""
        grows = (rows - self.start_rows) // self.step_size
        small = np.arange(min(steps, self.steps), dtype=np.int64) * grows // self.steps
        warm = self.start_rows * len(small) + self.step_size * int(small.sum())
        return warm + rows * max(0, steps - self.steps)

    def num_steps(self, total: float, rows: int) -> int:
        """The steps that have about `total` rows together, at least one."""
        missing = rows * self.steps - self.total(self.steps, rows)
        steps = round((total + missing) / rows)
        if steps < self.steps:
            sizes = [self.at(step, rows) for step in range(self.steps)]
            steps = int(np.searchsorted(np.cumsum(sizes), total)) + 1
        return max(1, steps)

    def check(self, rows: int) -> None:
        """Refuse a warm-up that does not end at `batch.rows`."""
        if self.start_rows > rows or (rows - self.start_rows) % self.step_size:
            raise RecipeError(
                f"batch_warmup: {self.start_rows} rows and {self.step_size} more at a time do not "
                f"lead to batch.rows = {rows}. Choose start_rows and increment so that batch.rows "
                "less start_rows is a multiple of increment."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSchedules:
    """The schedules of one stage, and its number of steps."""

    steps: int = 1
    """Optimizer steps of the stage."""
    masking_rate: MaskingRate | None = None
    """The rate of `mlm` and `tlm`; none: that of their own settings."""
    batch_warmup: BatchWarmup | None = None
    """Rows of the first steps; none: all steps have `batch.rows`."""


def with_highest_rate(
    streams: tuple[OpenStream, ...], schedules: StageSchedules | None
) -> tuple[OpenStream, ...]:
    """The streams with the highest masking rate of a stage: targets are planned by it."""
    if schedules is None or schedules.masking_rate is None:
        return streams
    rate = schedules.masking_rate.highest
    return tuple(
        replace(
            stream,
            objectives=tuple(
                (name, one.with_masking_rate(rate)) for name, one in stream.objectives
            ),
        )
        for stream in streams
    )


class ObjectivesOfStep:
    """The objectives with the masking rate of a step; those of the last step are kept."""

    def __init__(self, schedules: StageSchedules | None) -> None:
        self._schedules = schedules
        self._step = -1
        self._known: dict[str, Objective] = {}

    def at(self, step: int, name: str, objective: Objective) -> Objective:
        """The objective of this name in a step, from 0."""
        if self._schedules is None or self._schedules.masking_rate is None:
            return objective
        if self._step != step:
            self._step, self._known = step, {}
        if name not in self._known:
            rate = self._schedules.masking_rate.at(step, self._schedules.steps)
            self._known[name] = objective.with_masking_rate(rate)
        return self._known[name]
