"""The number of training steps: planned, and computed again right before training begins.

    --hours, Trial --fill_hours--> Recipe with steps, validations and checkpoints
    AdaptPlan, seconds that "before" took --fit_steps--> AdaptPlan with the steps that still fit

A plan with `--hours` is made from estimates. When the corpus is prepared, most of them can be
replaced by what was measured: the time since the command began, and the time of the first scores,
by which those after training are estimated.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from isoglot.adaptation.choices import Decision, in_words
from isoglot.adaptation.knowledge_plan import knowledge_readings
from isoglot.adaptation.plan_files import is_as_written, write_plan
from isoglot.adaptation.resources import num_steps, time_decision, train_seconds
from isoglot.errors import IsoglotError
from isoglot.pretraining.estimates.costs import steps_for_hours
from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.adaptation.choices import Mixture
    from isoglot.adaptation.findings import KnowledgeFacts
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.plan_files import AdaptPlan
    from isoglot.adaptation.request import AdaptConfig
    from isoglot.adaptation.resources import Trial
    from isoglot.pretraining.config import Recipe
    from isoglot.pretraining.estimates.costs import RunCosts

_VALIDATIONS = 10
"""Validations, and checkpoints, of a run."""
_MANY_STEPS = 10**9
_VALIDATION_SHARE = 0.1
"""Most time of validations and checkpoints, as a share of that of the steps."""
_DIFFERENCE = 0.02
"""Share of the planned steps from which on another number replaces them."""
_PADDING_TOLD = 0.005
"""Share of padding from which on a plan says it."""
_FEW_STEPS = 100
"""Fewer leave the warm-up of the learning rate hardly any."""
_FEWEST = 10
"""One of so many planned steps is trained even where the hours are over."""


def scheduled(recipe: Recipe, steps: int, costs: RunCosts | None = None) -> Recipe:
    """The recipe with this many steps, and up to ten validations and checkpoints on the way.

    Where they would take more than a tenth of the time of the steps, there are fewer; early
    stopping needs all.
    """
    number = _VALIDATIONS
    if costs is not None and recipe.early_stopping is None:
        stage = costs.stages[0]
        each = stage.validation_seconds + costs.checkpoint_seconds
        affordable = _VALIDATION_SHARE * steps * stage.step_seconds / max(each, 1e-9)
        number = max(1, min(number, int(affordable)))
    every = -(-steps // number)
    return replace(
        recipe,
        stages=(replace(recipe.stages[0], steps=steps),),
        checkpoint=replace(recipe.checkpoint, every_steps=every),
        logging=replace(recipe.logging, validate_every_steps=every),
    )


def fill_hours(recipe: Recipe, trial: Trial, config: AdaptConfig, other_seconds: float) -> Recipe:
    """The recipe with the steps that fill what the other steps leave of the hours.

    Raises:
        IsoglotError: they leave nothing.
    """
    assert config.hours is not None
    left = 3600 * config.hours - other_seconds
    if left <= 0:
        raise IsoglotError(
            f"--hours {config.hours:g}: preparing and scoring alone take "
            f"{duration(other_seconds)}. Give more hours, or hold out fewer lines (--heldout, now "
            f"{config.heldout:,})."
        )
    # the number of steps decides on validations, which take time, too
    recipe = scheduled(recipe, _MANY_STEPS, trial.costs)
    for _ in range(4):
        (steps,) = steps_for_hours(recipe, trial.costs, (1,), left)
        recipe = scheduled(recipe, steps, trial.costs)
    return recipe


def steps_decision(
    config: AdaptConfig,
    mixture: Mixture,
    recipe: Recipe,
    trial: Trial,
    facts: KnowledgeFacts | None,
) -> Decision:
    """How many steps there are, and why."""
    steps = recipe.stages[0].steps or 0
    total = steps * trial.costs.stages[0].step_tokens
    whole = mixture.text_tokens + mixture.pair_tokens
    passes = (1 - mixture.knowledge_share) * total / max(1, whole)
    if config.hours is None:
        reason = f"one pass over text and pairs is {in_words(whole)} tokens, and data of this "
        reason += f"size get {mixture.passes} passes on average"
    else:
        reason = f"they fill the {config.hours:g} hours after preparing and scoring"
        if passes > 2 * mixture.passes:
            reason += f"; {passes:.0f} passes over the data on average, where its size suggests "
            reason += f"{mixture.passes}: add data, or stop early"
        elif steps < _FEW_STEPS:
            reason += "; so few steps teach little: give more hours, or a smaller encoder"
    return Decision(
        topic="steps",
        choice=f"{steps:,} steps, {in_words(total)} tokens: {_readings(mixture, facts, total)}",
        reason=f"{reason}; {_padding(recipe, trial)}{trial.tokens_per_second:,.0f} tokens a second "
        f"measured, without padding; "
        f"{recipe.batch.micro_rows} rows at a time: {trial.reason}",
    )


def _padding(recipe: Recipe, trial: Trial) -> str:
    """The positions of the steps, where padding fills some of them."""
    batch, (stage,) = recipe.batch, recipe.stages
    positions = batch.rows * batch.row_length
    share = 1 - trial.costs.stages[0].step_tokens / positions
    if share < _PADDING_TOLD:
        return ""
    total = (stage.steps or 0) * positions
    return f"the steps have {in_words(total)} positions, {100 * share:.0f} % of them padding; "


def _readings(mixture: Mixture, facts: KnowledgeFacts | None, total: float) -> str:
    """How often each part of the data is read when so many tokens are trained on.

    Pairs are read under contrast, and sides of pairs under MLM.
    """
    shares = {name: stream.share for name, stream in mixture.streams.items()}
    of_text = sum(shares.get(name, 0.0) for name in ("text", "sentences"))
    parts = (
        ("text", of_text, mixture.given_tokens),
        ("sides of pairs", shares.get("sides", 0.0), mixture.sides_tokens),
        ("pairs", shares.get("parallel", 0.0), mixture.pair_tokens),
    )
    every = sum(shares.values())
    told = [(name, part / every * total / max(1, once)) for name, part, once in parts if part]
    told += knowledge_readings(facts, mixture.streams, total)
    return ", ".join(f"{name} {times:.1f} times" for name, times in told)


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
    steps, planned = num_steps(recipe), num_steps(plan.recipe)
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
        compared = "more" if change > 0 else "less"
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
    return fitted if num_steps(fitted) >= fewest else scheduled(recipe, fewest, trial.costs)


def _fewest(recipe: Recipe) -> int:
    return max(1, num_steps(recipe) // _FEWEST)
