"""Exact resume: an interrupted and resumed run is, bit for bit, the run without interruption.

These runs are interrupted by SIGTERM inside one process; `test_kill.py` (slow) kills processes.
"""

import io
import os
import shutil
import signal
import time

import pytest
import torch
from rich.console import Console

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.corpus import Corpus
from isoglot.errors import CheckpointError
from isoglot.objectives.mlm import MLM
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from isoglot.pretraining.run import pretrain
from isoglot.types import Cursor, Draw
from tests.pretraining import driver, launching
from tests.tiny_corpus import make_corpus

STOPS = {
    "plain": (4, 13),
    "contrast": (2, 7),
    "slots": (5, 11),
    "seq2seq": (2, 5, 10),
    "knowledge": (1, 6),
    "stopping": (3, 6, 8),
}
"""Steps after which each run is interrupted, one or more in every stage."""


def train(config, corpus, folder, *, resume=False, stop_at=None):
    """Train, with SIGTERM after a step of the run if asked; returns what the console showed."""
    shown = io.StringIO()
    taken = launching.last_step(folder / "metrics.jsonl") if resume else 0

    def interrupt(_):
        nonlocal taken
        taken += 1
        if taken == stop_at:
            os.kill(os.getpid(), signal.SIGTERM)

    console = Console(file=shown, width=200)
    outcome = pretrain(config, corpus, folder, resume=resume, console=console, on_step=interrupt)
    return outcome, shown.getvalue()


def assert_same(run, other):
    assert launching.losses(run / "metrics.jsonl") == launching.losses(other / "metrics.jsonl")
    (last,) = sorted((other / "checkpoints").glob("step-*"))[-1:]
    for kind in ("weights", "optimizer"):
        one = Checkpoint(run / "checkpoints" / last.name).read(kind)
        two = Checkpoint(last).read(kind)
        assert one.keys() == two.keys()
        assert all(one[key].equal(two[key]) for key in one), kind
    names = ("model/model.safetensors",)
    assert all((run / name).read_bytes() == (other / name).read_bytes() for name in names)


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    """The plain run without interruption."""
    folder = tmp_path_factory.mktemp("finished")
    pretrain(driver.config(), corpus, folder, console=Console(quiet=True))
    return folder


@pytest.mark.parametrize("mix", STOPS)
def test_an_interrupted_run_is_the_uninterrupted_one(mix, corpus, knowing, tmp_path):
    data = knowing if mix == "knowledge" else corpus
    config = driver.MIXES[mix]()
    whole, run = tmp_path / "whole", tmp_path / "run"
    pretrain(config, data, whole, console=Console(quiet=True))
    for number, step in enumerate(STOPS[mix]):
        outcome, shown = train(config, data, run, resume=number > 0, stop_at=step)
        assert not outcome.finished
        assert not (run / "model").exists()
        assert "a checkpoint is saved after this step" in shown
        assert (run / "checkpoints" / f"step-{outcome.total_steps:08d}").is_dir()
    outcome, shown = train(config, data, run, resume=True)
    assert outcome.finished
    assert "resuming from" in shown
    assert_same(run, whole)


def test_a_damaged_checkpoint_is_skipped(corpus, finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    total = sum(driver.STEPS)
    newest = run / "checkpoints" / f"step-{total:08d}" / "weights.safetensors"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    _, shown = train(driver.config(), corpus, run, resume=True)
    assert "is damaged" in shown
    assert_same(run, finished)


def test_another_corpus_is_refused(corpus, finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    other = make_corpus(tmp_path, seed=1, vocabulary=350)
    with pytest.raises(CheckpointError, match="was trained on another corpus"):
        pretrain(driver.config(), other, run, resume=True)
    with pytest.raises(CheckpointError, match="Add --resume to continue"):
        pretrain(driver.config(), Corpus.open(corpus.folder), run)


def test_the_first_step_after_resume_is_as_quick_at_any_step(corpus):
    shape = BatchConfig(rows=8, micro_rows=2, row_length=96)
    streams = driver.config().stages[1].streams
    opened = open_streams(corpus, streams, {"mlm": MLM(), "tlm": TLM()}, row_length=96)
    loader = Loader(corpus, opened, shape)
    cells = len(loader.mixture.components)

    def first(number: int) -> float:
        cursor = Cursor(
            step=number,
            counters=(number * 20,) * cells,
            pending=(Draw(0, number * 20 - 1),) if number else (),
        )
        began = time.process_time()  # other processes do not count
        next(loader.steps(cursor))
        return time.process_time() - began

    first(0)
    early = min(first(0) for _ in range(20))
    late = min(first(10_000_000) for _ in range(20))
    assert late < 2 * early


def test_bad_bytes_in_the_recipe_beside_a_run_do_not_stop_its_resumption(corpus, tmp_path):
    config = driver.config()
    steps: list[object] = []

    def stop(step):
        steps.append(step)
        if len(steps) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    run, quiet = tmp_path / "run", Console(quiet=True)
    pretrain(config, corpus, run, recipe_text="name: a\n", console=quiet, on_step=stop)
    (run / "recipe.yaml").write_bytes(b"name: \xff\xfe\n")
    pretrain(config, corpus, run, recipe_text="name: a\n", console=quiet, resume=True)
    assert (run / "recipe.yaml").read_text() == "name: a\n"
    (before,) = run.glob("recipe-until-*.yaml")
    assert before.read_bytes() == b"name: \xff\xfe\n"


@pytest.mark.slow
def test_other_numbers_of_processes_and_strategies_go_on(corpus, tmp_path):
    """Every number goes on where another stopped; the end is that of one process all along."""
    run, whole = tmp_path / "run", tmp_path / "whole"
    launching.Forked(corpus.folder, whole, "--still").finish()
    ways = [
        (4, 3, ("--strategy", "hsdp", "--shard-processes", "2")),
        (2, 6, ("--strategy", "fsdp")),
        (2, 11, ("--strategy", "ddp")),
        (4, 14, ("--strategy", "fsdp")),
        (1, sum(driver.STEPS), ()),
    ]
    for number, until, way in ways:
        done = launching.last_step(run / "metrics.jsonl")
        options = ("--still", "--step-seconds", "0.1", *way, *(("--resume",) if done else ()))
        running = launching.Forked(corpus.folder, run, *options, processes=number)
        while running.alive and launching.last_step(run / "metrics.jsonl") < until:
            time.sleep(0.002)
        running.signal(signal.SIGTERM)
        running.finish()
        stopped_at = launching.last_step(run / "metrics.jsonl")
        newest = run / "checkpoints" / f"step-{stopped_at:08d}"
        assert stopped_at > done
        assert len(list(newest.glob("weights*"))) == number
    steps = launching.losses(run / "metrics.jsonl"), launching.losses(whole / "metrics.jsonl")
    assert steps[0].keys() == steps[1].keys() == set(range(1, 1 + sum(driver.STEPS)))
    for step, found in steps[0].items():
        assert found["mlm/loss"] == pytest.approx(steps[1][step]["mlm/loss"], rel=1e-8)
    one, two = (Checkpoint(folder / "checkpoints" / newest.name).read() for folder in (run, whole))
    for name, weight in two.items():
        torch.testing.assert_close(one[name], weight, rtol=1e-7, atol=1e-9)
