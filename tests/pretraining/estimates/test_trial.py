"""Steps on trial: times and memory of real steps, and memory that runs out."""

import subprocess
import sys
import threading
from dataclasses import replace

import pytest
import torch

from isoglot.batching.loader import LoaderConfig
from isoglot.batching.planner import BatchConfig
from isoglot.pretraining.estimates import measuring
from isoglot.pretraining.estimates.micro_rows import DoesNotFitError
from isoglot.pretraining.estimates.trial import Trial
from isoglot.pretraining.estimates.trial_process import TrialError, TrialProcess
from isoglot.pretraining.memory import is_out_of_memory
from isoglot.pretraining.train_module import TrainModule
from tests.pretraining import driver
from tests.pretraining.local_trial import LocalTrial, measurer, spec

ROWS = BatchConfig(rows=16, micro_rows="auto", row_length=96)


@pytest.fixture
def few_rows_fit(monkeypatch):
    """A device whose memory ends beyond 5 rows at a time."""
    forward = TrainModule.forward

    def limited(self, batch=None, **options):
        if batch is not None and len(batch.rows.ids) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return forward(self, batch, **options)

    monkeypatch.setattr(TrainModule, "forward", limited)
    monkeypatch.setattr(measuring, "TrialProcess", LocalTrial)
    monkeypatch.setattr(measuring, "_SIZE_SECONDS", 0.0)


def one_stage(config):
    return replace(config, stages=config.stages[-1:])


def test_a_trial_times_every_stage_and_trains_nothing(corpus, tmp_path):
    trial = Trial(spec(driver.config(batch=replace(ROWS, rows=8)), corpus, tmp_path))
    before = {name: one.clone() for name, one in trial._context.module.named_parameters()}
    small, large = trial.size(1, 0.0), trial.size(4, 0.0)
    assert [small.micro_rows, large.micro_rows] == [1, 4]
    assert small.tokens_per_second > 0
    assert large.peak_bytes > 2**20
    assert trial.smallest() == 1
    for name, one in trial._context.module.named_parameters():
        assert one.equal(before[name]), name


def test_the_costs_are_those_of_a_run(corpus, tmp_path):
    trial = Trial(spec(driver.contrast(), corpus, tmp_path))
    found = trial.costs(2, 0.05)
    assert len(found.stages) == 2
    for stage in found.stages:
        assert stage.step_seconds > 0
        # rows of 96 tokens, nearly full
        assert 0.5 * 8 * 96 < stage.step_tokens <= 8 * 96
        assert stage.validation_seconds > 0
    trained = trial._context.module
    assert found.checkpoint_bytes > 4 * sum(one.numel() for one in trained.parameters())
    assert found.export_bytes > 4 * sum(one.numel() for one in trained.encoder.parameters())
    assert found.stages[1].open_seconds > 0


def test_memory_that_ends_is_an_answer_and_smaller_sizes_are_taken(corpus, tmp_path, few_rows_fit):
    config = one_stage(driver.config(batch=ROWS))
    with measurer(config, corpus, tmp_path) as measured:
        found = measured.micro_rows()
    assert found.number in (1, 2, 4)
    assert "rows do not fit the memory" in found.reason


def test_in_batch_negatives_of_a_step_are_split_where_they_do_not_fit(
    corpus, tmp_path, few_rows_fit
):
    config = one_stage(driver.contrast())
    moco = replace(config.objectives["moco"], in_batch_negatives=True)
    config = replace(config, objectives={"moco": moco}, batch=replace(ROWS, rows=8))
    with measurer(config, corpus, tmp_path) as measured:
        found = measured.micro_rows()
    assert found.number in (2, 4)
    assert "8 rows do not fit the memory" in found.reason


def test_in_batch_negatives_of_a_micro_batch_are_never_split(corpus, tmp_path, few_rows_fit):
    config = one_stage(driver.contrast())
    negatives = {"in_batch_negatives": True, "negatives": "micro_batch"}
    moco = replace(config.objectives["moco"], **negatives)
    config = replace(config, objectives={"moco": moco}, batch=replace(ROWS, rows=4))
    with measurer(config, corpus, tmp_path / "one") as measured:
        assert measured.micro_rows().number == 4
    config = replace(config, batch=replace(ROWS, rows=8))
    with (
        measurer(config, corpus, tmp_path / "two") as measured,
        pytest.raises(DoesNotFitError, match="moco compares the examples") as caught,
    ):
        measured.micro_rows()
    assert caught.value.largest == 4


def test_a_trial_process_takes_batches_from_loader_workers(corpus, tmp_path):
    """Workers are forked while a thread of the process waits for its next request."""
    config = one_stage(driver.config(batch=replace(ROWS, rows=4)))
    config = replace(config, loader=LoaderConfig(num_workers=1))
    process = TrialProcess(spec(config, corpus, tmp_path), torch.device("cpu"))
    hung = threading.Timer(90, process.close)
    hung.start()
    try:
        found = process.size(2, 0.0)
    finally:
        hung.cancel()
        process.close()
    assert found is not None, "no answer after 90 s"
    assert found.tokens_per_second > 0


def test_errors_of_allocators_are_known():
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"))
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50)
    assert is_out_of_memory(caught.value)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))


@pytest.mark.parametrize(
    ("said", "fits"),
    [("MemoryError:", False), ("RuntimeError: bad_alloc", False), ("ValueError: a row", True)],
)
def test_a_process_that_ends_without_an_answer(said, fits, corpus, tmp_path, monkeypatch):
    """Without memory even the answer that there is none may fail: its last line tells."""
    asked = TrialProcess(spec(driver.config(), corpus, tmp_path), torch.device("cpu"))

    def ends():
        asked._log.write_text(f"Traceback (most recent call last):\n  ...\n{said}\n")
        command = [sys.executable, "-c", "import sys; sys.stdin.readline(); sys.exit(1)"]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    monkeypatch.setattr(asked, "_start", ends)
    if fits:
        with pytest.raises(TrialError, match="ended with an error"):
            asked.size(4, 0.0)
    else:
        assert asked.size(4, 0.0) is None
