"""The number of training steps, computed again right before training begins.

    AdaptPlan, seconds that "before" took --fit_steps--> AdaptPlan with the steps that still fit

A plan with `--hours` is made from estimates. When the corpus is prepared, most of them can be
replaced by what was measured: the time since the command began, and the time of the first scores,
by which those after training are estimated.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from isoglot.adaptation.plan import is_as_written, steps_decision, write_plan
from isoglot.adaptation.resources import fill_hours, scheduled, time_decision, train_seconds
from isoglot.errors import IsoglotError
from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.adaptation.config import AdaptConfig
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.plan import AdaptPlan
    from isoglot.adaptation.resources import Trial
    from isoglot.pretraining.config import Recipe

_DIFFERENCE = 0.02
"""Share of the planned steps from which on another number replaces them."""
_FEWEST = 10
"""One of so many planned steps is trained even where the hours are over."""


def fit_steps(
    plan: AdaptPlan,
    config: AdaptConfig,
    folder: AdaptFolder,
    before_seconds: float | None,
    note: Callable[[str], None],
) -> AdaptPlan:
    """The plan with the steps that fill what is left of the hours; its files are written again.

    The same plan without hours, if it was read from its files or these were edited, or if the
    number of steps changes by 2 % or less.

    Args:
        plan: the plan that is carried out; its data are prepared.
        config: the settings.
        folder: the folder of the adaptation.
        before_seconds: time that the scores before took; none: as estimated.
        note: told of another number of steps.
    """
    basis = plan.basis
    if basis is None or config.hours is None or plan.edited or not is_as_written(folder):
        return plan
    later = seconds_after_training(plan.step_seconds, before_seconds)
    other = time.monotonic() - basis.began + sum(later.values())
    recipe = _recipe_that_fits(plan.recipe, basis.trial, config, other)
    steps, planned = _num_steps(recipe), _num_steps(plan.recipe)
    if abs(steps - planned) <= _DIFFERENCE * planned:
        return plan
    training = train_seconds(recipe, basis.trial)
    over = other + training - 3600 * config.hours
    decision = steps_decision(config, basis.mixture, recipe, basis.trial, basis.findings.knowledge)
    if over > 0 and steps == _fewest(plan.recipe):
        reason = f"preparing and scoring leave too little of the {config.hours:g} hours, which "
        reason += f"will be exceeded by about {duration(over)}"
        decision = replace(decision, reason=reason)
    else:
        change = plan.step_seconds["train"] - training
        compared = "longer" if change > 0 else "less long"
        reason = f"preparing and scoring take {duration(abs(change))} {compared} than planned"
    seconds = {**plan.step_seconds, **later, "train": training}
    changed = {
        "steps": decision,
        "time and disk": time_decision(seconds, plan.disk_bytes, basis.findings),
    }
    decisions = tuple(changed.get(one.topic, one) for one in plan.decisions)
    fitted = replace(plan, recipe=recipe, step_seconds=seconds, decisions=decisions)
    write_plan(fitted, folder)
    note(f"{steps:,} steps instead of {planned:,}: {reason}")
    return fitted


def seconds_after_training(
    estimated: dict[str, float], before_seconds: float | None
) -> dict[str, float]:
    """Time of the steps after training, by how long the scores before took.

    The scores after take as much longer, or shorter, than estimated as those before did. Other
    steps take as much longer, and never less than estimated.
    """
    slower = 1.0
    if before_seconds is not None:
        slower = before_seconds / max(estimated["before"], 1e-9)
    others = ("choose", "link", "speed")
    scaled = {name: max(1.0, slower) * estimated[name] for name in others if name in estimated}
    return {**scaled, "after": slower * estimated["after"]}


def _recipe_that_fits(
    recipe: Recipe, trial: Trial, config: AdaptConfig, other_seconds: float
) -> Recipe:
    """The recipe with the steps that fill the hours, and at least a tenth of its own."""
    fewest = _fewest(recipe)
    try:
        fitted = fill_hours(recipe, trial, config, other_seconds)
    except IsoglotError:  # not even one step fits
        return scheduled(recipe, fewest, trial.costs)
    return fitted if _num_steps(fitted) >= fewest else scheduled(recipe, fewest, trial.costs)


def _fewest(recipe: Recipe) -> int:
    return max(1, _num_steps(recipe) // _FEWEST)


def _num_steps(recipe: Recipe) -> int:
    steps = recipe.stages[0].steps
    assert steps is not None, "a plan with hours has a number of steps"
    return steps
