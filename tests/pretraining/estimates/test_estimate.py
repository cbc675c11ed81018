"""An estimate against the run that it is of."""

import json
from dataclasses import replace

import pytest
import torch

from isoglot.batching.planner import BatchConfig
from isoglot.pretraining.checkpoints import checkpoint
from isoglot.pretraining.config import LoggingConfig
from isoglot.pretraining.estimates import measuring
from isoglot.pretraining.estimates.costs import occasions
from isoglot.pretraining.estimates.estimate import estimate_run, find_micro_rows
from isoglot.pretraining.estimates.micro_rows import DoesNotFitError
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver
from tests.pretraining.local_trial import LocalTrial


@pytest.fixture
def local(monkeypatch):
    """Trials in this process, which takes seconds less."""
    monkeypatch.setattr(measuring, "TrialProcess", LocalTrial)


def test_what_an_estimate_counts_is_what_the_run_does(corpus, tmp_path, local):
    config = driver.config(
        batch=BatchConfig(rows=4, micro_rows=2, row_length=96),
        logging=LoggingConfig(validate_every_steps=6, validate_examples=5, trackers=()),
    )
    found = estimate_run(config, corpus, folder=tmp_path / "planned", trial_seconds=0.05)
    assert not (tmp_path / "planned").exists()
    assert not list(tmp_path.iterdir())
    assert found.steps == driver.STEPS
    outcome = pretrain(found.config, corpus, tmp_path / "run")
    assert found.tokens == pytest.approx(outcome.tokens, rel=0.1)
    newest = checkpoint.latest(tmp_path / "run/checkpoints")
    assert newest is not None
    # the second stage's draws, by stream
    cursor = checkpoint.Checkpoint(newest).state.cursor
    drawn = sum(cursor.counters) - len(cursor.pending)
    expected = sum(one.passes * one.examples for one in found.passes if one.stage == 1)
    assert drawn == pytest.approx(expected, rel=0.01)
    size = sum(file.stat().st_size for file in newest.iterdir())
    assert found.costs.checkpoint_bytes == pytest.approx(size, rel=0.02)
    exported = sum(f.stat().st_size for f in (tmp_path / "run/model").rglob("*") if f.is_file())
    assert found.costs.export_bytes == pytest.approx(exported, rel=0.05)
    records = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    validated = sum("seconds" not in record for record in records)
    assert sum(occasions(config, found.steps).validations) == validated
    shown = dict(found.rows())
    assert shown["stage 1"].startswith("10 steps of ")
    assert shown["checkpoints"].startswith("7 of ")
    assert found.seconds > found.training_seconds > 0


def test_an_estimate_says_what_looks_wrong(corpus, tmp_path, local):
    first = replace(driver.config().stages[0], steps=50_000)
    config = replace(driver.config(), stages=(first,))
    found = estimate_run(config, corpus, folder=tmp_path, trial_seconds=0.0)
    (note,) = found.notes()
    assert "passes seldom help" in note
    assert "text" in note
    (note,) = replace(found, passes=(), disk_bytes=10**18).notes()
    assert "lower checkpoint.keep" in note
    slow = replace(found.config, optimizer=OptimizerConfig(warmup_steps=40_000))
    (note,) = replace(found, passes=(), config=slow).notes()
    assert "rises for 40,000 steps, and stage 1 has 50,000." in note


def test_without_time_for_a_search_one_number_of_rows_is_tried(corpus, tmp_path, local):
    config = driver.config()
    config = replace(config, batch=replace(config.batch, micro_rows="auto"))
    tried = {}
    for seconds in (0.0, 60.0):
        found = estimate_run(
            config, corpus, folder=tmp_path, trial_seconds=0.0, search_seconds=seconds
        )
        speeds = found.reason.partition("tokens/s by rows at a time: ")[2].partition(";")[0]
        tried[seconds] = speeds.count(": ")
    assert tried[0.0] == 1 < tried[60.0]


@pytest.mark.slow
def test_hours_are_filled_by_the_steps_of_an_estimate(corpus, tmp_path):
    found = estimate_run(driver.config(), corpus, hours=1.0, folder=tmp_path, trial_seconds=0.5)
    assert sum(found.steps) > 100
    assert found.seconds == pytest.approx(3600, rel=0.1)
    assert [stage.steps for stage in found.config.stages] == list(found.steps)


@pytest.mark.slow
def test_a_process_without_memory_dies_alone(corpus, tmp_path, monkeypatch):
    """A real limit: allocations fail, or the process is killed, and the search goes on."""
    monkeypatch.setattr(measuring, "_SIZE_SECONDS", 0.0)
    monkeypatch.setattr(measuring, "free_memory", lambda _: 350 * 2**20)
    monkeypatch.setattr(measuring, "_CPU_TOKENS", 512 * 96)
    one = replace(driver.config(), stages=driver.config().stages[:1])
    config = replace(one, batch=BatchConfig(rows=512, micro_rows="auto", row_length=96))
    found = find_micro_rows(config, corpus, folder=tmp_path)
    assert found.number < 512
    assert "do not fit the memory" in found.reason
    monkeypatch.setattr(measuring, "free_memory", lambda _: 2**20)
    with pytest.raises(DoesNotFitError):
        find_micro_rows(config, corpus, folder=tmp_path)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_largest_size_that_fits_is_not_exceeded(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "free_memory", lambda _: 2 * 2**30)
    one = replace(driver.config(), stages=driver.config().stages[:1])
    config = replace(one, batch=BatchConfig(rows=16384, micro_rows="auto", row_length=96))
    found = find_micro_rows(config, corpus, folder=tmp_path)
    assert found.trials
    assert all(trial.peak_bytes <= 2 * 2**30 for trial in found.trials)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() < 2**20  # the trial was another process's
