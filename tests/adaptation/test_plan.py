from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from isoglot.adaptation.choices import in_words
from isoglot.adaptation.plan import make_plan
from isoglot.adaptation.resources import Trial
from isoglot.adaptation.vocabulary import choose_growth, trained_data
from isoglot.pretraining.config import Recipe
from tests.adaptation.trials import COSTS, tried


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


def test_the_plan_says_how_often_each_part_is_read(planned, looked):
    """English has text, Swahili only the sides of pairs; pairs are read for contrast, too."""
    (steps,) = [one.choice for one in planned.decisions if one.topic == "steps"]
    streams = planned.recipe.stages[0].streams
    total = (planned.recipe.stages[0].steps or 0) * COSTS.stages[0].step_tokens
    every = sum(stream.share for stream in streams.values())
    trained = trained_data(
        looked.findings, choose_growth(looked.findings, looked.config, looked.folder)
    )
    english, pairs = trained.text["en"].tokens, trained.pairs["en-sw"].tokens
    text = streams["text"].share + streams["sentences"].share
    read = (
        f"text {text / every * total / english:.1f} times, "
        f"sides of pairs {streams['sides'].share / every * total / pairs:.1f} times, "
        f"pairs {streams['parallel'].share / every * total / pairs:.1f} times"
    )
    assert steps.endswith(f"tokens: {read}")


def test_rows_and_steps_explain_their_tokens(planned, looked):
    """Tokens of one pass, of all passes, positions with padding: named, and they agree."""
    of = {one.topic: one for one in planned.decisions}
    batch, steps = planned.recipe.batch, planned.recipe.stages[0].steps or 0
    growth = choose_growth(looked.findings, looked.config, looked.folder)
    facts = trained_data(looked.findings, growth)
    data = sum(facts.text[code].tokens for code in looked.config.languages)
    data += sum(one.tokens for one in facts.pairs.values())
    trained = in_words(steps * COSTS.stages[0].step_tokens)
    assert f"{steps:,} steps, {trained} tokens" in of["steps"].choice
    assert f"one pass over text and pairs is {in_words(data)} tokens" in of["steps"].reason
    assert "get 10 passes on average" in of["steps"].reason
    all_passes = f"{in_words(10 * data)} tokens, all passes over the data together, fill {steps:,}"
    assert all_passes in of["rows"].reason
    positions = steps * batch.rows * batch.row_length
    padding = 1 - COSTS.stages[0].step_tokens / (batch.rows * batch.row_length)
    told = f"{in_words(positions)} positions, {100 * padding:.0f} % of them padding"
    assert told in of["steps"].reason


def test_rows_that_do_not_fit_at_a_time(looked):
    """Contrast needs the whole step at a time: the step is smaller then, and there are more."""

    def fewer(recipe: Recipe) -> Trial:
        return tried(recipe)._replace(rows=4, micro_rows=4)

    made = [make_plan(looked.findings, looked.config, looked.folder, one) for one in (tried, fewer)]
    plans = [plan.recipe for plan in made]
    rows = [plan.batch.rows for plan in plans]
    assert rows == [16, 4]
    assert plans[1].batch.micro_rows == 4
    told = [one for one in made[1].decisions if one.topic == "rows"]
    assert [one.choice for one in told] == [f"4 rows of {plans[1].batch.row_length} tokens a step"]
    assert "4 rows at most fit the memory" in told[0].reason
    steps = [plan.stages[0].steps or 0 for plan in plans]
    assert f"fill {steps[1]:,} steps" in told[0].reason
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
