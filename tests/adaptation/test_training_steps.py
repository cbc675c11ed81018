"""The number of steps: planned to fill the hours, and computed again; faked times, no training."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from isoglot.adaptation.carry_out import Adaptation
from isoglot.adaptation.choices import in_words
from isoglot.adaptation.display import STEPS, StepDisplay
from isoglot.adaptation.folder import AdaptFolder, StepRecords
from isoglot.adaptation.plan import make_plan
from isoglot.adaptation.plan_files import AdaptPlan, read_plan, write_plan
from isoglot.adaptation.request import AdaptConfig
from isoglot.adaptation.resources import Trial
from isoglot.adaptation.training_steps import seconds_after_training
from isoglot.errors import IsoglotError
from isoglot.pretraining.config import Recipe
from isoglot.pretraining.estimates.costs import seconds_of_run
from isoglot.recipe import load_recipe
from tests.adaptation.trials import COSTS, tried

HOURS = 0.25


@pytest.fixture
def config(looked) -> AdaptConfig:
    settings: AdaptConfig = replace(looked.config, hours=HOURS)
    return settings


@pytest.fixture
def plan(looked, config, tmp_path) -> AdaptPlan:
    """A plan of this command, which is written to the folder."""
    found = make_plan(looked.findings, config, looked.folder, tried)
    write_plan(found, AdaptFolder(tmp_path))
    return found


def until_training(plan: AdaptPlan, config: AdaptConfig, out: Path, **took: float):
    """The adaptation after `until_training`, as if it had begun so many seconds ago.

    Args:
        plan: the plan; its files are in `out`.
        config: the settings.
        out: the folder.
        took: seconds of `before`, and of everything until now.
    """
    if plan.basis is not None:
        plan = replace(plan, basis=plan.basis._replace(began=time.monotonic() - took["now"]))
    folder = AdaptFolder(out)
    StepRecords(folder.steps).finish("before", {}, {}, seconds=took["before"])
    text = StringIO()
    console = Console(file=text, width=200)
    display = StepDisplay(console, STEPS)
    work = Adaptation(config=config, plan=plan, folder=folder, display=display, console=console)
    return work.with_steps_left(), text


def num_steps(plan: AdaptPlan) -> int:
    return plan.recipe.stages[0].steps or 0


def planned_until_training(plan: AdaptPlan) -> float:
    return plan.step_seconds["before"] + plan.step_seconds["prepare"]


def test_choosing_and_timing_are_estimated(plan, looked):
    """Three models are read to choose and two to be timed, 2 s each, and tokens are encoded."""
    assert set(plan.step_seconds) == {"before", "prepare", "train", "choose", "after", "speed"}
    per_second = (
        3 * 2000.0
    )  # forward passes are three times as fast as steps of 1000 tokens in 0.5 s
    (pairs,) = looked.findings.pairs.values()
    mean = pairs.tokens / pairs.lines
    number = plan.prepare.heldout_share * pairs.lines
    expected = 3 * 2.0 + 3 * number * mean / per_second + 0.2
    assert plan.step_seconds["choose"] == pytest.approx(expected)
    heldout = [(one.heldout, one.tokens / one.lines) for one in looked.findings.text.values()]
    assert sum(lines for lines, _ in heldout) < 256
    tokens = sum(lines * length for lines, length in heldout)
    assert plan.step_seconds["speed"] == pytest.approx(2 * 2.0 + 8 * tokens / per_second)
    more = plan.step_seconds["after"] - plan.step_seconds["before"]
    assert more == pytest.approx(2.0 + pairs.heldout * mean / per_second)
    (line,) = [one for one in plan.decisions if one.topic == "time and disk"]
    said = [part.rstrip("0123456789 mins") for part in line.reason.split(", ")]
    titles = ("before", "prepare", "train", "choose", "after", "speed")
    assert said[:6] == [STEPS[name].rstrip("mins") for name in titles], "as while they run"


def test_a_slow_beginning_leaves_fewer_steps(plan, config, tmp_path):
    """The rest of the hours is filled, to within a step, a validation and a checkpoint."""
    before = 10 * plan.step_seconds["before"]
    spent = planned_until_training(plan) + 9 * plan.step_seconds["before"]
    work, text = until_training(plan, config, tmp_path, before=before, now=spent)
    steps = num_steps(work.plan)
    assert 0 < steps < num_steps(plan)
    seconds = work.plan.step_seconds
    for name in ("choose", "after", "speed"):
        assert seconds[name] == pytest.approx(10 * plan.step_seconds[name])
    whole = spent + sum(seconds[name] for name in ("train", "choose", "after", "speed"))
    assert 0 < 3600 * HOURS - whole < 1.6 + 0.5
    said = text.getvalue()
    assert said.startswith(f"note: {steps:,} steps instead of {num_steps(plan):,}: preparing and ")
    assert said.endswith(" more than planned\n")

    recipe = load_recipe(str(tmp_path / "plan/recipe.yaml"))
    assert recipe == work.plan.recipe
    assert recipe.checkpoint.every_steps == -(-steps // 10)
    content = json.loads((tmp_path / "plan/plan.json").read_text("utf-8"))
    assert content["step_seconds"] == seconds
    (line,) = [one for one in content["decisions"] if one["topic"] == "steps"]
    assert line["choice"].startswith(f"{steps:,} steps, {in_words(1000 * steps)} tokens")
    assert len(content["decisions"]) == len(plan.decisions)


def test_an_interrupted_command_continues_with_the_same_number(plan, config, tmp_path):
    before = 10 * plan.step_seconds["before"]
    work, _ = until_training(plan, config, tmp_path, before=before, now=300.0)
    again = read_plan(AdaptFolder(tmp_path))
    assert again is not None
    assert again == work.plan
    assert not again.edited
    later, text = until_training(again, config, tmp_path, before=500.0, now=900.0)
    assert later.plan == again
    assert text.getvalue() == ""


def test_time_as_planned_keeps_the_plan(plan, config, tmp_path):
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "plan").iterdir()}
    work, text = until_training(
        plan,
        config,
        tmp_path,
        before=1.01 * plan.step_seconds["before"],
        now=planned_until_training(plan) + 1,
    )
    assert work.plan == plan
    assert text.getvalue() == ""
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "plan").iterdir()} == files


def test_a_quick_beginning_leaves_more_steps(looked, config, tmp_path):
    """Only the scores after are taken to be quicker than estimated, as those before were."""

    def slow(recipe: Recipe) -> Trial:
        return tried(recipe)._replace(prepare_seconds=300.0)

    plan = make_plan(looked.findings, config, looked.folder, slow)
    write_plan(plan, AdaptFolder(tmp_path))
    before = plan.step_seconds["before"] / 2
    work, text = until_training(plan, config, tmp_path, before=before, now=20.0)
    assert num_steps(work.plan) > num_steps(plan)
    assert work.plan.step_seconds["after"] == pytest.approx(plan.step_seconds["after"] / 2)
    assert work.plan.step_seconds["choose"] == plan.step_seconds["choose"]
    assert text.getvalue().endswith(" less than planned\n")


def test_hours_that_are_over_leave_a_tenth_of_the_steps(plan, config, tmp_path):
    before = plan.step_seconds["before"]
    work, text = until_training(plan, config, tmp_path, before=before, now=3600 * HOURS)
    assert num_steps(work.plan) == num_steps(plan) // 10
    assert "leave too little of the 0.25 hours, which will be exceeded by about" in text.getvalue()
    (line,) = [one for one in work.plan.decisions if one.topic == "steps"]
    assert "leave too little of the 0.25 hours" in line.reason


@pytest.mark.parametrize("when", ["before the command", "while it runs"])
def test_an_edited_plan_keeps_its_number(plan, config, tmp_path, when):
    recipe = tmp_path / "plan/recipe.yaml"
    recipe.write_text(recipe.read_text().replace("seed: 0", "seed: 7"))
    text = recipe.read_text()
    used = read_plan(AdaptFolder(tmp_path)) if when == "before the command" else plan
    assert used is not None
    work, said = until_training(used, config, tmp_path, before=100.0, now=600.0)
    assert num_steps(work.plan) == num_steps(plan)
    assert (recipe.read_text(), said.getvalue()) == (text, "")


def test_training_that_has_begun_keeps_its_number(plan, config, tmp_path):
    StepRecords(AdaptFolder(tmp_path).steps).finish("begun", {}, {}, seconds=0.0)
    work, said = until_training(plan, config, tmp_path, before=100.0, now=600.0)
    assert (work.plan, said.getvalue()) == (plan, "")


def test_without_hours_the_data_decide(looked, tmp_path):
    plan = make_plan(looked.findings, looked.config, looked.folder, tried)
    write_plan(plan, AdaptFolder(tmp_path))
    work, said = until_training(plan, looked.config, tmp_path, before=100.0, now=10**5)
    assert (work.plan, said.getvalue()) == (plan, "")


def test_steps_after_training_by_the_scores_before():
    estimated = {"before": 8.0, "train": 200.0, "choose": 10.0, "after": 8.0, "speed": 6.0}
    assert seconds_after_training(estimated, 20.0) == {"choose": 25.0, "after": 20.0, "speed": 15.0}
    assert seconds_after_training(estimated, 4.0) == {"choose": 10.0, "after": 4.0, "speed": 6.0}
    linked = {**estimated, "link": 2.0}
    assert seconds_after_training(linked, None) == {
        "choose": 10.0,
        "link": 2.0,
        "after": 8.0,
        "speed": 6.0,
    }


def test_the_costs_of_the_trial_are_not_written(plan, tmp_path):
    assert plan.basis is not None
    assert plan.basis.trial.costs == COSTS
    assert "basis" not in json.loads((tmp_path / "plan/plan.json").read_text("utf-8"))
    again = read_plan(AdaptFolder(tmp_path))
    assert again is not None
    assert again.basis is None


@pytest.mark.parametrize(("hours", "told"), [(0.02, True), (0.2, False)])
def test_so_few_steps_that_they_teach_little_are_told(looked, hours, told):
    plan = make_plan(looked.findings, replace(looked.config, hours=hours), looked.folder, tried)
    (steps,) = (one for one in plan.decisions if one.topic == "steps")
    assert ((plan.recipe.stages[0].steps or 0) < 100) == told
    assert ("so few steps teach little: give more hours" in steps.reason) == told


def test_hours_are_filled(looked):
    """What other steps leave, to within a step, a validation and a checkpoint."""
    config = replace(looked.config, hours=0.5)
    began = time.monotonic()
    plan = make_plan(looked.findings, config, looked.folder, tried, spent_seconds=100.0)
    planning = time.monotonic() - began
    left = 1800 - 100 - plan.seconds
    assert 0 < left < planning + 1.6
    steps = plan.recipe.stages[0].steps
    assert steps is not None
    assert plan.step_seconds["train"] == seconds_of_run(plan.recipe, COSTS, (steps,))
    assert plan.recipe.checkpoint.every_steps == -(-steps // 10)
    short = make_plan(looked.findings, replace(config, hours=0.02), looked.folder, tried).recipe
    few = short.stages[0].steps or 0
    # 1.1 s each, in a tenth of the time of the steps, which is what this machine leaves of 72 s
    assert 1 <= -(-few // short.checkpoint.every_steps) <= max(1, 0.1 * 0.5 * few / 1.1)
    with pytest.raises(IsoglotError, match=r"--hours 0.001: preparing and scoring alone take"):
        make_plan(looked.findings, replace(config, hours=0.001), looked.folder, tried)
