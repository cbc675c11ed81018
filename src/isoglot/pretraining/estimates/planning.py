"""The plan of a run: rows at a time that fit the memory, and steps that fill the hours.

    recipe (micro_rows: auto, --hours) --trial process--> RunPlan --> recipe with numbers

A plan is made once, before the first step, and written to RUN/plan.json: a resumed run takes its
numbers from there. All processes of a run follow one plan: the smallest number of rows at a time,
and the slowest process's steps.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from isoglot import json_text
from isoglot.atomic import write_json
from isoglot.errors import CheckpointError
from isoglot.pretraining.checkpoints.checkpoint import latest
from isoglot.pretraining.estimates.costs import seconds_of_run, steps_for_hours
from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from isoglot.pretraining.config import PretrainConfig
    from isoglot.pretraining.estimates.measuring import RunMeasurer, TimeBudget

C = TypeVar("C", bound="PretrainConfig")
PLAN = "plan.json"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Numbers of a run that its recipe left open."""

    asked: str
    """Fingerprint of the recipe as it was given."""
    hours: float | None
    """The time that was asked for."""
    micro_rows: int
    reason: str
    """Why so many rows at a time."""
    steps: tuple[int, ...] | None
    """Steps of each stage that fill the hours; none: the recipe's."""

    def apply(self, config: C) -> C:
        """The recipe with the plan's numbers."""
        return with_numbers(config, self.micro_rows, self.steps)

    def write(self, folder: Path) -> None:
        """Keep it with the run."""
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / PLAN, {"format": FORMAT, **asdict(self)})


def with_numbers(config: C, micro_rows: int, steps: Sequence[int] | None) -> C:
    """The recipe with a number of rows at a time and, if given, of steps of each stage."""
    config = replace(config, batch=replace(config.batch, micro_rows=micro_rows))
    if steps is None:
        return config
    pairs = zip(config.stages, steps, strict=True)
    stages = tuple(replace(stage, steps=number, epochs=None) for stage, number in pairs)
    return replace(config, stages=stages)


def read_plan(folder: Path) -> RunPlan | None:
    """The plan of a run, if it has one.

    Raises:
        CheckpointError: the file is damaged.
    """
    file = folder / PLAN
    if not file.is_file():
        return None
    try:
        content: dict[str, Any] = json_text.parse(file.read_text(encoding="utf-8"))
        del content["format"]
        steps = content.pop("steps")
        return RunPlan(**content, steps=None if steps is None else tuple(steps))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(
            f"{file} cannot be read ({error!r}). Resume with the numbers of {folder}/recipe.yaml: "
            f"isoglot pretrain {folder}/recipe.yaml --resume, after removing {file}."
        ) from None


def stored_plan(
    config: PretrainConfig, folder: Path, budget: TimeBudget | None, num_processes: int
) -> RunPlan | None:
    """The plan that a resumed run goes on with; none: it has none, or needs none.

    Args:
        config: the recipe as it is given now.
        folder: the run's.
        budget: the hours that are given now.
        num_processes: of the resumed run.

    Raises:
        CheckpointError: other hours are given than those that the run was planned for.
    """
    begun, plan = latest(folder / "checkpoints") is not None, read_plan(folder)
    if budget is not None:
        if not begun:
            return None  # nothing is trained yet: it is planned again, with the time that is left
        if plan is None or plan.hours != budget.hours:
            before = f"{plan.hours:g} hours" if plan and plan.hours else "its recipe's steps"
            raise CheckpointError(
                f"{folder} was begun with {before}, and its learning rate follows their number. "
                "Leave --hours out to continue it, or set the steps with --set stages.0.steps=N."
            )
    if plan is None:
        return None
    same = plan.asked == config.fingerprint()
    if not same and config.batch.micro_rows != "auto":
        return None
    plan = plan if same else replace(plan, steps=None)
    # another number of processes may need a smaller number, which fits as well
    fitting = math.gcd(plan.micro_rows, max(1, config.row_unit // num_processes))
    return replace(plan, micro_rows=fitting)


def needs_plan(config: PretrainConfig, budget: TimeBudget | None) -> bool:
    """Does a recipe leave a number open?"""
    return budget is not None or config.batch.micro_rows == "auto"


def make_plan(
    measurer: RunMeasurer, asked: PretrainConfig, count_steps: Callable[[int], list[int]]
) -> RunPlan:
    """Try and measure; say what was chosen and why.

    Args:
        measurer: of the run.
        asked: the recipe as it was given.
        count_steps: the recipe's steps of each stage, given the rows at a time.

    Raises:
        IsoglotError: nothing fits the memory, or the hours are too few.
    """
    budget, say = measurer.budget, measurer.console.print
    rows = measurer.micro_rows()
    if asked.batch.micro_rows == "auto":
        say(f"batch.micro_rows: {rows.number} ({rows.reason})", highlight=False, soft_wrap=True)
    plan = RunPlan(
        asked=asked.fingerprint(),
        hours=None if budget is None else budget.hours,
        micro_rows=rows.number,
        reason=rows.reason,
        steps=None,
    )
    if budget is None:
        return plan
    costs = measurer.costs(rows.number)
    config, proportions = plan.apply(measurer.config), count_steps(rows.number)
    # the clocks of processes differ, and all take the same steps
    steps = measurer.on_all(lambda: steps_for_hours(config, costs, proportions, budget.left()))[0]
    training = sum(n * one.step_seconds for n, one in zip(steps, costs.stages, strict=True))
    said = ", ".join(f"{number:,}" for number in steps)
    say(
        f"--hours {budget.hours:g}: {said} steps (the recipe has "
        f"{', '.join(f'{number:,}' for number in proportions)}), {duration(training)} of training; "
        f"{duration(seconds_of_run(config, costs, steps) - training)} for the rest",
        highlight=False,
        soft_wrap=True,
    )
    for note in warmup_notes(config, steps):
        say(f"[yellow]note[/]: {note}", highlight=False, soft_wrap=True)
    return replace(plan, steps=steps)


def warmup_notes(config: PretrainConfig, steps: Sequence[int]) -> list[str]:
    """Sentences about stages most of which would be warm-up of the learning rate."""
    found = []
    for number, of_stage in enumerate(steps):
        warmup = config.optimizer_in(number).warmup_steps
        if warmup is not None and warmup > of_stage / 2:
            found.append(
                f"optimizer.warmup_steps: the learning rate rises for {warmup:,} steps, and stage "
                f"{number + 1} has {of_stage:,}. Set a share instead: --set "
                "optimizer.warmup_steps=null --set optimizer.warmup_ratio=0.1."
            )
    return found
