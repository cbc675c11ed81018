from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.plan import AdaptPlan, make_plan, read_plan, write_plan
from isoglot.adaptation.resources import Trial
from isoglot.errors import IsoglotError, RecipeError
from isoglot.pretraining.config import Recipe
from isoglot.pretraining.costs import RunCosts, StageCosts, seconds_of_run
from isoglot.recipe import load_prepare, load_recipe

COSTS = RunCosts(
    build_seconds=2.0,
    compile_seconds=1.0,
    stages=(
        StageCosts(
            open_seconds=1.0,
            step_seconds=0.5,
            step_tokens=1000.0,
            first_validation_seconds=1.0,
            validation_seconds=1.0,
        ),
    ),
    peak_bytes=10**9,
    checkpoint_seconds=0.1,
    checkpoint_bytes=10**6,
    export_seconds=0.2,
    export_bytes=10**6,
)


def tried(recipe: Recipe) -> Trial:
    return Trial(recipe.batch.rows, recipe.batch.rows, "they fit", COSTS, 3.0)


@pytest.fixture
def planned(looked) -> AdaptPlan:
    return make_plan(looked.findings, looked.config, looked.folder, tried)


def test_every_choice_has_a_reason_with_a_number(planned):
    assert [one.topic for one in planned.decisions] == [
        "objectives",
        "vocabulary",
        "languages",
        "cleaning",
        "rows",
        "learning rate",
        "steps",
        "time and disk",
    ]
    for one in planned.decisions:
        assert any(character.isdigit() for character in one.reason), one


def test_the_plan_says_how_often_text_and_pairs_are_read(planned, looked):
    (steps,) = [one.choice for one in planned.decisions if one.topic == "steps"]
    streams = planned.recipe.stages[0].streams
    total = (planned.recipe.stages[0].steps or 0) * COSTS.stages[0].step_tokens
    share = streams["parallel"].share / sum(stream.share for stream in streams.values())
    pairs = sum(one.tokens for one in looked.findings.pairs.values())
    text = sum(looked.findings.text[code].tokens for code in looked.config.languages)
    read = f"text {(1 - share) * total / text:.1f} times, pairs {share * total / pairs:.1f} times"
    assert steps.endswith(f"tokens: {read}")


def test_files_of_a_plan_are_what_the_commands_read(planned, looked, tmp_path):
    folder = AdaptFolder(tmp_path)
    write_plan(planned, folder)
    assert load_recipe(str(folder.plan / "recipe.yaml")) == planned.recipe
    assert load_prepare(folder.plan / "prepare.yaml") == planned.prepare
    assert read_plan(folder) == planned
    assert planned.prepare.exclude[0] == "../heldout/kept-out.jsonl"
    assert planned.recipe.corpus == str(looked.folder.corpus.absolute())
    assert planned.recipe.batch.micro_rows == planned.recipe.batch.rows


def test_edited_files_are_used_as_they_are(planned, tmp_path):
    folder = AdaptFolder(tmp_path)
    assert read_plan(folder) is None
    write_plan(planned, folder)
    recipe = folder.plan / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("seed: 0", "seed: 7"))
    again = read_plan(folder)
    assert again is not None
    assert (again.edited, again.recipe.seed) == (("recipe.yaml",), 7)
    assert again.step_seconds == planned.step_seconds
    steps = planned.recipe.stages[0].steps
    recipe.write_text(recipe.read_text().replace(f"- steps: {steps}\n", f"- steps: {2 * steps}\n"))
    again = read_plan(folder)
    assert again is not None
    assert again.step_seconds["train"] == pytest.approx(2 * planned.step_seconds["train"])
    assert again.decisions[:-1] == planned.decisions
    assert again.decisions[-1].topic == "EDITED"
    assert f"{2 * steps:,} steps" in again.decisions[-1].choice
    recipe.write_text(recipe.read_text().replace("seed: 7", "sead: 7"))
    with pytest.raises(RecipeError, match=r"recipe.yaml:\d+: sead: unknown setting; did you mean"):
        read_plan(folder)
    recipe.unlink()
    with pytest.raises(RecipeError, match=r"is not a plan any more .* Remove the folder"):
        read_plan(folder)


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


def test_a_disk_that_is_too_small(looked):
    machine = replace(looked.findings.machine, disk_free_bytes=10**6)
    with pytest.raises(IsoglotError, match=r"need 0.0 GB, and 0.0 GB are free there. Free disk"):
        make_plan(replace(looked.findings, machine=machine), looked.config, looked.folder, tried)


def test_rows_that_do_not_fit_at_a_time(looked):
    """Contrast needs the whole step at a time: the step is smaller then, and there are more."""

    def fewer(recipe: Recipe) -> Trial:
        return tried(recipe)._replace(rows=4, micro_rows=4)

    plans = [
        make_plan(looked.findings, looked.config, looked.folder, one).recipe
        for one in (tried, fewer)
    ]
    rows = [plan.batch.rows for plan in plans]
    assert rows == [16, 4]
    assert plans[1].batch.micro_rows == 4
    steps = [plan.stages[0].steps or 0 for plan in plans]
    assert steps[1] == pytest.approx(4 * steps[0], abs=3)


def test_what_the_user_says_is_in_the_recipe(looked):
    config = replace(looked.config, early_stopping=True, license="cc-by-4.0", seed=3)
    plan = make_plan(looked.findings, config, looked.folder, tried)
    assert plan.recipe.early_stopping is not None
    assert (plan.recipe.export.checkpoint, plan.recipe.export.license) == ("best", "cc-by-4.0")
    assert (plan.recipe.seed, plan.prepare.heldout_seed) == (3, 3)


def test_a_vocabulary_that_grows_changes_where_training_starts(looked):
    config = replace(looked.config, vocabulary=40)
    plan = make_plan(looked.findings, config, looked.folder, tried)
    assert (plan.new_words, plan.grow_from) == (40, ("sw",))
    assert plan.prepare.tokenizer.folder == "../encoder"
    assert plan.recipe.model.init_from == str(looked.folder.encoder.absolute())
    assert "grow" in plan.step_seconds
    kept = make_plan(looked.findings, replace(config, vocabulary="keep"), looked.folder, tried)
    assert kept.prepare.tokenizer.folder == looked.findings.encoder.folder
    assert Path(kept.recipe.model.init_from or "") == Path(looked.findings.encoder.folder)
