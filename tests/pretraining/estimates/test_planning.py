"""The plan of a run: made once, kept with it, and followed by a resumed run."""

import io
import json
import os
import signal
import time
from dataclasses import replace

import psutil
import pytest
from rich.console import Console

from isoglot.batching.planner import BatchConfig
from isoglot.errors import CheckpointError, IsoglotError
from isoglot.pretraining.checkpoints import checkpoint
from isoglot.pretraining.config import LoggingConfig
from isoglot.pretraining.estimates import measuring
from isoglot.pretraining.estimates.costs import RunCosts, seconds_of_run
from isoglot.pretraining.estimates.measuring import TimeBudget, process_start, time_budget
from isoglot.pretraining.estimates.micro_rows import SizeTrial
from isoglot.pretraining.estimates.planning import read_plan, stored_plan, warmup_notes
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver, launching
from tests.pretraining.estimates.test_costs import STAGE
from tests.pretraining.test_resume import assert_same

AUTO = BatchConfig(rows=4, micro_rows="auto", row_length=96)


class FakeTrial:
    """A trial process that answers at once; two rows at a time are the fastest."""

    started = 0
    costs_of_run = RunCosts(
        build_seconds=1.0,
        compile_seconds=0.0,
        stages=(replace(STAGE, step_seconds=2.0), replace(STAGE, step_seconds=1.0)),
        peak_bytes=1000,
        checkpoint_seconds=0.5,
        checkpoint_bytes=70,
        export_seconds=1.0,
        export_bytes=30,
    )

    def __init__(self, spec, device, *, port=None):
        type(self).started += 1
        self.spec, self.used_bytes = spec, 0

    def smallest(self):
        return 1

    def size(self, micro_rows, seconds):
        speed = 100 - 10 * abs(micro_rows - 2)
        return SizeTrial(micro_rows=micro_rows, tokens_per_second=speed, peak_bytes=1000)

    def costs(self, micro_rows, seconds):
        assert micro_rows == 2
        return self.costs_of_run

    def close(self):
        pass


@pytest.fixture
def trial(monkeypatch):
    monkeypatch.setattr(measuring, "TrialProcess", FakeTrial)
    FakeTrial.started = 0
    return FakeTrial


def auto(**changes):
    return driver.config(batch=AUTO, **changes)


def train(config, corpus, folder, **options):
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    text = options.pop("recipe_text", lambda one: f"micro_rows: {one.batch.micro_rows}\n")
    outcome = pretrain(config, corpus, folder, console=console, recipe_text=text, **options)
    return outcome, shown.getvalue()


def interrupt_at(step):
    def interrupt(result):
        if result.step == step:
            os.kill(os.getpid(), signal.SIGTERM)

    return interrupt


def test_auto_trains_what_the_same_number_by_hand_trains(corpus, tmp_path, trial):
    _, shown = train(auto(), corpus, tmp_path / "auto")
    assert "batch.micro_rows: 2 (tokens/s by rows at a time: 1: 90, 2: 100, 4: 80" in shown
    by_hand = driver.config(batch=replace(AUTO, micro_rows=2))
    train(by_hand, corpus, tmp_path / "hand")
    assert_same(tmp_path / "auto", tmp_path / "hand")
    newest = [checkpoint.latest(tmp_path / name / "checkpoints") for name in ("auto", "hand")]
    states = [checkpoint.Checkpoint(place).state for place in newest if place is not None]
    assert states[0] == states[1]  # the recipe's fingerprint included
    assert (tmp_path / "auto/recipe.yaml").read_text() == "micro_rows: 2\n"
    assert not (tmp_path / "auto/.trial").exists()


def test_a_resumed_run_takes_the_number_of_its_plan_and_tries_nothing(corpus, tmp_path, trial):
    train(auto(), corpus, tmp_path / "whole")
    stopped, _ = train(auto(), corpus, tmp_path / "run", on_step=interrupt_at(4))
    assert not stopped.finished
    trial.started = 0
    outcome, shown = train(auto(), corpus, tmp_path / "run", resume=True)
    assert outcome.finished
    assert trial.started == 0
    assert "the recipe differs" not in shown
    assert_same(tmp_path / "run", tmp_path / "whole")
    assert not list((tmp_path / "run").glob("recipe-until-*"))


def test_hours_set_the_steps_from_the_time_that_is_left(corpus, tmp_path, trial, monkeypatch):
    config = auto(logging=LoggingConfig(validate_every_steps=0, validate_examples=5, trackers=()))
    monkeypatch.setattr(TimeBudget, "left", lambda self: self.seconds - 22.0)
    outcome, shown = train(config, corpus, tmp_path, budget=time_budget(0.02))
    plan = read_plan(tmp_path)
    assert plan is not None
    assert plan.steps is not None
    assert plan.hours == 0.02
    first, second = plan.steps
    assert outcome.total_steps == first + second
    assert first / second == pytest.approx(10 / 8, rel=0.2)
    # 72 s, of which 22 are over
    taken = seconds_of_run(plan.apply(config), trial.costs_of_run, plan.steps)
    assert 45 < taken <= 50
    assert f"--hours 0.02: {first}, {second} steps (the recipe has 10, 8)" in shown


def test_a_run_of_hours_is_resumed_with_its_steps(corpus, tmp_path, trial, monkeypatch):
    monkeypatch.setattr(TimeBudget, "left", lambda _: 60.0)
    stopped, _ = train(auto(), corpus, tmp_path, budget=time_budget(0.02), on_step=interrupt_at(3))
    assert not stopped.finished
    plan, trial.started = read_plan(tmp_path), 0
    with pytest.raises(CheckpointError, match=r"begun with 0\.02 hours"):
        train(auto(), corpus, tmp_path, resume=True, budget=time_budget(3))
    outcome, _ = train(auto(), corpus, tmp_path, resume=True)
    assert plan is not None
    assert plan.steps is not None
    assert outcome.total_steps == sum(plan.steps)
    assert trial.started == 0


def test_hours_are_refused_for_a_run_that_has_begun_without(corpus, tmp_path, trial):
    config = driver.config()
    train(config, corpus, tmp_path, on_step=interrupt_at(3))
    with pytest.raises(CheckpointError, match="begun with its recipe's steps"):
        train(config, corpus, tmp_path, resume=True, budget=time_budget(1))


def test_a_damaged_plan_is_said(corpus, tmp_path, trial):
    train(auto(), corpus, tmp_path, on_step=interrupt_at(3))
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"plan\.json cannot be read"):
        train(auto(), corpus, tmp_path, resume=True)


def test_another_number_of_processes_takes_a_number_that_divides(corpus, tmp_path, trial):
    train(auto(), corpus, tmp_path, on_step=interrupt_at(3))
    found = stored_plan(auto(), tmp_path, None, 4)
    assert found is not None
    assert found.micro_rows == 1


def test_hours_must_be_a_time():
    for hours in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(IsoglotError, match="no time to train"):
            time_budget(hours)
    budget = TimeBudget(hours=0.5, started=100.0)
    assert budget.left(clock=lambda: 700.0) == 1200.0


def test_a_process_knows_when_it_was_started():
    age = time.monotonic() - process_start()
    assert age == pytest.approx(time.time() - psutil.Process().create_time(), abs=2.0)


def test_a_stage_that_is_all_warm_up_is_noted():
    config = driver.config(optimizer=OptimizerConfig(warmup_steps=10_000))
    (note,) = warmup_notes(config, (2000, 500))
    assert "rises for 10,000 steps, and stage 1 has 2,000." in note


def test_a_run_that_is_all_warm_up_says_so(corpus, tmp_path):
    config = driver.config()
    assert "warmup_steps" not in train(config, corpus, tmp_path / "some")[1]
    config = replace(config, optimizer=OptimizerConfig(warmup_steps=10_000))
    shown = train(config, corpus, tmp_path / "all")[1]
    assert "rises for 10,000 steps, and stage 1 has 10. Set a share instead" in shown


@pytest.mark.slow
def test_auto_in_a_process_of_its_own_leaves_the_run_as_it_is(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "_SIZE_SECONDS", 0.1)
    config = replace(driver.contrast(), batch=replace(AUTO, rows=8))
    train(config, corpus, tmp_path / "auto")
    plan = json.loads((tmp_path / "auto/plan.json").read_text())
    assert plan["micro_rows"] in (1, 2, 4, 8)
    by_hand = replace(config, batch=replace(AUTO, rows=8, micro_rows=plan["micro_rows"]))
    train(by_hand, corpus, tmp_path / "hand")
    assert_same(tmp_path / "auto", tmp_path / "hand")


@pytest.mark.slow
def test_two_processes_agree_on_one_plan(corpus, tmp_path):
    options = ("--auto", "--hours", "0.002", "--seconds-left", "30")
    launching.Forked(corpus.folder, tmp_path / "run", *options, processes=2).finish()
    plan = read_plan(tmp_path / "run")
    assert plan is not None
    assert plan.micro_rows in (1, 2)
    assert plan.steps is not None
    newest = checkpoint.latest(tmp_path / "run/checkpoints")
    assert newest is not None
    assert checkpoint.Checkpoint(newest).state.total_steps == sum(plan.steps)
