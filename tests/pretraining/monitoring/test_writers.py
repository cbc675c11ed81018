"""What the console shows of a validation, and how metrics.jsonl is cut when a run is resumed."""

import io
import json
import random
import resource
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from isoglot.errors import WriteError
from isoglot.pretraining.monitoring.worsening import RisingLossWriter
from isoglot.pretraining.monitoring.writers import (
    ConsoleWriter,
    MetricsFile,
    PrepareProgress,
    Record,
    step_record,
)
from isoglot.pretraining.train_step import StepResult
from isoglot.progress import duration
from isoglot.types import Cursor

VALIDATION: Record = {
    "step": 30,
    "stage": 0,
    "valid/mlm/de/perplexity": 9.0,
    "valid/mlm/mean/perplexity": 12.345,
    "valid/entity/de/accuracy": 0.9,
    "valid/entity/mean/loss": 3.21,
    "valid/entity/mean/accuracy": 0.345,
    "valid/entity/mean/chance": 0.0125,
    "valid/mixed.moco/mean/loss": 0.5,
    "valid/parallel/mean/retrieval": 0.25,
}


def test_a_validation_shows_perplexity_loss_and_accuracy_beside_chance():
    file = io.StringIO()
    writer = ConsoleWriter("xlm-k", 100, 0, Console(file=file, width=200))
    writer.write(VALIDATION)
    writer.close()
    expected = (
        "xlm-k step 30  held out: mlm perplexity 12.35, "
        "entity loss 3.21 accuracy 34.5 % chance 1.2 %, mixed.moco loss 0.50, "
        "parallel retrieval 25.0 %\n"
    )
    assert file.getvalue() == expected


def losses(*levels: float, noise: float = 0.05, stage: int = 0) -> list[Record]:
    """Records of 25 steps at each level of the loss."""
    chance = random.Random(0)
    return [
        {"step": step, "stage": stage, "seconds": 1.0, "moco/loss": chance.gauss(level, noise)}
        for step, level in enumerate((level for level in levels for _ in range(25)), start=1)
    ]


def warnings_of(records: list[Record]) -> list[str]:
    said: list[str] = []
    writer = RisingLossWriter(said.append)
    for record in records:
        writer.write(record)
    writer.close()
    return said


def test_a_loss_that_rises_clearly_is_told_once():
    (warning,) = warnings_of(losses(4.0, 2.4, 2.6, 3.2, 3.7, 3.9))
    assert "the loss of moco has risen from 2.4" in warning
    assert "(step 50) to 3.1" in warning
    assert "(step 100)" in warning


def test_losses_that_another_writer_watches_are_left_to_it():
    said: list[str] = []
    writer = RisingLossWriter(said.append, ["moco"])
    for record in losses(4.0, 2.4, 2.6, 3.2, 3.7, 3.9):
        writer.write(record)
    assert not said


@pytest.mark.parametrize(
    ("levels", "noise"), [((4.0, 3.0, 2.0), 0.1), ((2.0, 2.2, 2.25), 0.05), ((2.0, 2.5), 2.0)]
)
def test_falling_little_rising_and_noisy_losses_are_not(levels, noise):
    assert warnings_of(losses(*levels, noise=noise)) == []


def test_each_stage_and_objective_has_its_own_minimum():
    other: list[Record] = [{**record, "mlm/loss": 9.0} for record in losses(3.0, stage=1)]
    assert warnings_of([*losses(2.0), *other]) == []
    validation: Record = {"step": 1, "valid/moco/mean/loss": 99.0}
    assert warnings_of([*losses(2.0), validation]) == []


def test_a_full_disk_leaves_whole_lines_and_is_told(tmp_path):
    file = tmp_path / "metrics.jsonl"
    writer = MetricsFile(file)
    writer.write({"step": 1, "mlm/loss": 2.0})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 5, hard))
    try:
        with pytest.raises(WriteError, match=r"metrics\.jsonl: cannot be written"):
            writer.write({"step": 2, "mlm/loss": 3.0})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.write({"step": 2, "mlm/loss": 4.0})
    writer.close()
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"step": 1, "mlm/loss": 2.0},
        {"step": 2, "mlm/loss": 4.0},
    ]


def test_a_resumed_run_keeps_the_records_up_to_its_checkpoint(tmp_path):
    file = tmp_path / "metrics.jsonl"
    text = "".join(json.dumps({"step": step}) + "\n" for step in (1, 2, 2, 3))
    file.write_text(text + '{"step": 3, "mlm', encoding="utf-8")
    MetricsFile(file, resume_at=2).close()
    assert [json.loads(line)["step"] for line in file.read_text().splitlines()] == [1, 2, 2]
    MetricsFile(file).close()
    assert file.read_text() == ""


@pytest.mark.parametrize(
    "damaged",
    [
        b"\xff\xfe",
        b"5",
        b"null",
        b'{"a": 1}',
        b'{"step": "x"}',
        b"{" * 100_000,
        b"[" * 100_000,
        b"",
    ],
)
def test_damaged_lines_of_metrics_are_left_out_when_a_run_is_resumed(tmp_path, caplog, damaged):
    file = tmp_path / "metrics.jsonl"
    good = [json.dumps({"step": step, "mlm/loss": 1.0}).encode() for step in range(1, 6)]
    file.write_bytes(b"\n".join([*good[:2], damaged, *good[2:], b'{"step": 6, "ml']))
    MetricsFile(file, resume_at=4).close()
    kept = [json.loads(line)["step"] for line in file.read_text().splitlines()]
    assert kept == [1, 2, 3, 4]
    assert "1 damaged lines are left out" in caplog.text


def test_metrics_of_a_run_that_has_none_yet(tmp_path):
    MetricsFile(tmp_path / "new/metrics.jsonl", resume_at=5).close()
    assert (tmp_path / "new/metrics.jsonl").read_text() == ""


def test_a_step_s_record_has_its_speed_and_counts():
    step = StepResult(
        step=3,
        losses={"mlm": 2.0},
        metrics={"mlm/accuracy": 0.5},
        counts={"mlm": 7},
        learning_rate=0.1,
        gradient_norm=1.5,
        num_tokens=600,
        seconds=4.0,
        skipped=False,
        cursor=Cursor(),
    )
    state = SimpleNamespace(stage=1, tokens=9000)
    record = step_record(step, 13, state)  # type: ignore[arg-type]
    assert record["tokens_per_second"] == 150.0
    assert (record["step"], record["stage"], record["total_tokens"]) == (13, 1, 9000)
    assert (record["mlm/loss"], record["mlm/accuracy"], record["mlm/count"]) == (2.0, 0.5, 7)
    assert "skipped" not in record
    skipped = step_record(replace(step, skipped=True), 13, state)  # type: ignore[arg-type]
    assert skipped["skipped"] == 1


def test_the_log_has_a_line_every_15_seconds_and_at_the_end(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file = io.StringIO()
    writer = ConsoleWriter("run", 40, 0, Console(file=file, width=200))
    for step in range(1, 41):
        now[0] += 4.0
        writer.write({"step": step, "tokens": 200, "seconds": 4.0, "mlm/loss": 2.0})
    lines = file.getvalue().splitlines()
    assert [line.split()[2] for line in lines] == [f"{step}/40" for step in range(4, 41, 4)]
    assert "mlm 2.000  50 tokens/s" in lines[0]
    assert lines[0].endswith(f"{duration(36 * 4.0)} left")
    assert lines[-1].endswith(f"{duration(0)} left")


def test_a_run_that_is_a_part_of_a_whole_shows_no_time_left_of_its_own():
    log, terminal = io.StringIO(), io.StringIO()
    for console in (
        Console(file=log, width=30),  # a log keeps lines whole
        Console(file=terminal, width=200, force_terminal=True),
    ):
        writer = ConsoleWriter("adapted", 4, 0, console, time_left=False)
        for step in range(1, 5):
            writer.write({"step": step, "tokens": 200, "seconds": 4.0, "mlm/loss": 2.0})
        writer.close()
    assert log.getvalue().splitlines() == ["adapted step 4/4  mlm 2.000  50 tokens/s"]
    assert "mlm 2.000  50 tokens/s" in terminal.getvalue()
    assert "left" not in terminal.getvalue()


def test_a_first_step_that_compiles_does_not_tell_the_time_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file = io.StringIO()
    writer = ConsoleWriter("run", 40, 7, Console(file=file, width=200))
    for step, seconds in ((8, 100.0), (9, 20.0), (10, 20.0)):
        now[0] += seconds
        writer.write({"step": step, "tokens": 200, "seconds": seconds, "mlm/loss": 2.0})
    first, second, third = file.getvalue().splitlines()
    assert first.endswith("2 tokens/s")
    assert second.endswith(f"10 tokens/s  {duration(31 * 20.0)} left")
    assert third.endswith(f"{duration(30 * 20.0)} left")


def test_what_is_made_once_for_a_corpus_is_told(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file = io.StringIO()
    progress = PrepareProgress(Console(file=file, width=200))
    for stage, done, total, seconds in (
        ("count", 0, 10, 0),
        ("count", 1, 10, 5),
        ("count", 5, 10, 6),
        ("count", 6, None, 60),
        ("merge", 0, 10, 0),
    ):
        now[0] += seconds
        progress(stage, done, total)
    assert file.getvalue().splitlines() == [
        "count (once for this corpus) ...",
        "count: 50 %",
        "merge (once for this corpus) ...",
    ]
