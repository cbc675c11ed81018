"""Exact resume: a run that is killed and resumed is, bit for bit, the run that was not."""

import os
import shutil
import signal
import time

import pytest
from safetensors.torch import load_file

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.corpus import Corpus
from isoglot.errors import CheckpointError
from isoglot.objectives import MLM, TLM
from isoglot.pretrain.run import pretrain
from isoglot.types import Cursor, Draw
from tests.pretrain import driver, processes
from tests.tiny_corpus import make_corpus

TOTAL = sum(driver.STEPS)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    """The run that nobody kills, on one process and on two."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for number in (1, 2):
        run = folder / str(number)
        processes.finish(processes.command(corpus.folder, run, processes=number))
    return folder


def assert_same(run, other):
    found = processes.losses(run / "metrics.jsonl")
    assert found == processes.losses(other / "metrics.jsonl")
    assert len(found) == TOTAL
    name = f"checkpoints/step-{TOTAL:08d}"
    for file in ("weights.safetensors", "optimizer.safetensors"):
        one, two = load_file(run / name / file), load_file(other / name / file)
        assert one.keys() == two.keys()
        assert all(one[key].equal(two[key]) for key in one), file
    assert (run / "model/model.safetensors").read_bytes() == (
        other / "model/model.safetensors"
    ).read_bytes()


@pytest.mark.parametrize("workers", [0, 2])
def test_killed_at_random_moments(corpus, undisturbed, tmp_path, workers):
    run = tmp_path / "run"
    killed = processes.killed_again_and_again(
        corpus.folder, run, "--workers", str(workers), seed=workers
    )
    assert killed == 3
    assert_same(run, undisturbed / "1")


def test_killed_on_two_processes(corpus, undisturbed, tmp_path):
    run = tmp_path / "run"
    killed = processes.killed_again_and_again(corpus.folder, run, processes=2, seed=7, kills=2)
    assert killed == 2
    assert_same(run, undisturbed / "2")


def test_one_and_two_processes_count_the_same_things(undisturbed):
    """The same global batches: counts and tokens are equal, losses to rounding and dropout."""
    one, two = (processes.losses(undisturbed / n / "metrics.jsonl") for n in ("1", "2"))
    for step in one:
        for name in one[step]:
            if name.endswith("/count") or name in ("tokens", "total_tokens", "learning_rate"):
                assert one[step][name] == two[step][name]
    assert one[1]["mlm/loss"] == pytest.approx(two[1]["mlm/loss"], rel=0.05)


def test_an_objective_without_sites_in_a_micro_batch_trains_on_two_processes(corpus, undisturbed):
    """With a tenth of the tokens and rows of one sequence or two, most micro-batches lack TLM."""
    found = processes.losses(undisturbed / "2" / "metrics.jsonl")
    counts = [found[step].get("tlm/count", 0) for step in range(driver.STEPS[0] + 1, TOTAL + 1)]
    assert 0 in counts
    assert any(counts)


@pytest.mark.parametrize("moment", [2, 7, 11])
def test_killed_while_a_checkpoint_is_written(corpus, undisturbed, tmp_path, moment):
    """Loses at most the steps since the checkpoint before."""
    run = tmp_path / "run"
    running = processes.Forked(corpus.folder, run, "--kill-in-save", str(moment))
    assert running.end(timeout=60) == [-signal.SIGKILL]
    whole = sorted(path.name for path in (run / "checkpoints").glob("step-*"))
    assert len(whole) == (moment - 1) // 5, "five syncs a checkpoint"
    processes.Forked(corpus.folder, run, "--resume").finish()
    assert_same(run, undisturbed / "1")


def test_sigterm_saves_and_exits_cleanly(corpus, undisturbed, tmp_path):
    run = tmp_path / "run"
    process = processes.start(processes.command(corpus.folder, run, "--workers", "2"))
    while processes.last_step(run / "metrics.jsonl") < 4:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    assert b"saving a checkpoint" in errors
    stopped_at = processes.last_step(run / "metrics.jsonl")
    assert (run / "checkpoints" / f"step-{stopped_at:08d}").is_dir()
    assert not (run / "model").exists()
    processes.Forked(corpus.folder, run, "--resume").finish()
    assert_same(run, undisturbed / "1")


def test_sigterm_to_the_whole_group_saves_too(corpus, tmp_path):
    """As a scheduler sends it: to the loader's workers as well."""
    run = tmp_path / "run"
    process = processes.start(processes.command(corpus.folder, run, "--workers", "2"))
    while processes.last_step(run / "metrics.jsonl") < 4:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    stopped_at = processes.last_step(run / "metrics.jsonl")
    assert (run / "checkpoints" / f"step-{stopped_at:08d}").is_dir()


def test_a_damaged_checkpoint_is_passed_over(corpus, undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed / "1", run)
    newest = run / "checkpoints" / f"step-{TOTAL:08d}" / "weights.safetensors"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    running = processes.Forked(corpus.folder, run, "--resume")
    running.finish()
    assert "is damaged" in running.errors
    assert_same(run, undisturbed / "1")


def test_another_corpus_is_refused(corpus, undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed / "1", run)
    other = make_corpus(tmp_path, seed=1, vocabulary=350)
    with pytest.raises(CheckpointError, match="was trained on another corpus"):
        pretrain(driver.config(), other, run, resume=True)
    with pytest.raises(CheckpointError, match="Add --resume to go on"):
        pretrain(driver.config(), Corpus.open(corpus.folder), run)


def test_the_first_step_after_resume_is_as_quick_at_any_step(corpus):
    shape = BatchConfig(rows=8, micro_rows=2, row_length=96)
    streams = driver.config().stages[1].streams
    opened = open_streams(corpus, streams, {"mlm": MLM(), "tlm": TLM()}, row_length=96)
    loader = Loader(corpus, opened, shape)
    cells = len(loader.mixture.cells)

    def first(number: int) -> float:
        cursor = Cursor(
            step=number,
            counters=(number * 20,) * cells,
            pending=(Draw(0, number * 20 - 1),) if number else (),
        )
        began = time.perf_counter()
        next(loader.steps(cursor))
        return time.perf_counter() - began

    first(0)
    early = min(first(0) for _ in range(20))
    late = min(first(10_000_000) for _ in range(20))
    assert late < 2 * early
