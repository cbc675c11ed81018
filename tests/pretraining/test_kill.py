"""Kill campaign: runs killed with SIGKILL at random moments, on one process and on two."""

import json
import os
import random
import signal
import time

import psutil
import pytest
import torch
from transformers import AutoModelForMaskedLM

from isoglot.locks import lock_folder
from isoglot.models import language_embeddings
from isoglot.objectives.contrast.info_nce import NO_ITEM
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from tests.pretraining import campaign, driver, launching
from tests.pretraining.test_resume import assert_same

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(corpus, knowing, tmp_path_factory):
    """A function: the run of a mix that nobody kills, on one process or two; each made once."""
    folder, made = tmp_path_factory.mktemp("undisturbed"), {}

    def run(mix, number):
        if (mix, number) not in made:
            data = knowing if mix == "knowledge" else corpus
            made[mix, number] = folder / f"{mix}-{number}"
            arguments = (data.folder, made[mix, number], "--mix", mix)
            launching.finish(launching.command(*arguments, processes=number))
        return made[mix, number]

    return run


# a kill may hit the process that multiprocessing keeps for its own bookkeeping
@pytest.mark.filterwarnings("ignore:resource_tracker")
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("mix", ["plain", "contrast", "slots", "knowledge", "stopping"])
def test_killed_at_random_moments(mix, number, corpus, knowing, undisturbed, tmp_path):
    """Checkpoints are three steps apart: each time some steps are run, and drawn, again."""
    run = tmp_path / "run"
    data = knowing if mix == "knowledge" else corpus
    killed = launching.killed_again_and_again(
        data.folder, run, "--mix", mix, processes=number, seed=3 + number, kills=2
    )
    assert killed == 2
    assert_same(run, undisturbed(mix, number))


def test_killed_with_loader_workers(corpus, undisturbed, tmp_path):
    run = tmp_path / "run"
    killed = launching.killed_again_and_again(corpus.folder, run, "--workers", "2", seed=2)
    assert killed == 3
    assert_same(run, undisturbed("plain", 1))


@pytest.mark.parametrize("moment", [2, 9, 13])
def test_killed_while_a_checkpoint_is_written(corpus, undisturbed, tmp_path, moment):
    """Loses at most the steps since the checkpoint before."""
    run = tmp_path / "run"
    running = launching.Forked(corpus.folder, run, "--kill-in-save", str(moment))
    assert running.end(timeout=60) == [-signal.SIGKILL]
    saved = sorted(path.name for path in (run / "checkpoints").glob("step-*"))
    assert len(saved) == (moment - 1) // campaign.SYNCS
    launching.Forked(corpus.folder, run, "--resume").finish()
    assert_same(run, undisturbed("plain", 1))


@pytest.mark.parametrize(("moment", "saved"), [(3, 0), (11, 1)])
def test_the_first_of_two_is_killed_while_a_checkpoint_is_written(
    corpus, undisturbed, tmp_path, moment, saved
):
    """In the first process nine files and folders are synced for a checkpoint, its own two first.

    At the third, all files are written, and the folder is not renamed yet; at the eleventh, the
    other process writes, too.
    """
    run = tmp_path / "run"
    running = launching.Forked(corpus.folder, run, "--kill-in-save", str(moment), processes=2)
    first, second = running.end(timeout=120)
    assert first == -signal.SIGKILL
    assert second == 1, "it is told that the other has ended"
    assert len(list((run / "checkpoints").glob("step-*"))) == saved
    launching.Forked(corpus.folder, run, "--resume", processes=2).finish()
    assert_same(run, undisturbed("plain", 2))


@pytest.mark.parametrize("to_group", [False, True])
def test_sigterm_saves_and_exits_cleanly(corpus, undisturbed, tmp_path, to_group):
    """To the process, or as a scheduler sends it: to the loader's workers as well."""
    run = tmp_path / "run"
    slow = ("--workers", "2", "--step-seconds", "0.2")
    process = launching.start(launching.command(corpus.folder, run, *slow))
    while launching.last_step(run / "metrics.jsonl") < 4:
        time.sleep(0.002)
    (os.killpg if to_group else os.kill)(process.pid, signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    assert b"a checkpoint is saved" in errors
    stopped_at = launching.last_step(run / "metrics.jsonl")
    assert (run / "checkpoints" / f"step-{stopped_at:08d}").is_dir()
    launching.Forked(corpus.folder, run, "--resume").finish()
    assert_same(run, undisturbed("plain", 1))


def test_a_scheduler_signals_every_process(corpus, undisturbed, tmp_path):
    """As scancel does; torchrun sends what it gets to its processes once more."""
    run = tmp_path / "run"
    slow = ("--step-seconds", "0.2")  # all signals arrive long before the last step
    process = launching.start(launching.command(corpus.folder, run, *slow, processes=2))
    while launching.last_step(run / "metrics.jsonl") < 4:
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.002)
    parent = psutil.Process(process.pid)
    for one in [*parent.children(recursive=True), parent]:
        one.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert b"a checkpoint is saved" in errors
    assert b"KeyboardInterrupt" not in errors
    stopped_at = launching.last_step(run / "metrics.jsonl")
    assert (run / "checkpoints" / f"step-{stopped_at:08d}").is_dir()
    assert not (run / ".lock").exists()
    launching.Forked(corpus.folder, run, "--resume", processes=2).finish()
    assert_same(run, undisturbed("plain", 2))


def test_signals_at_random_moments_lose_no_step(corpus, undisturbed, tmp_path):
    """Each process gets the signal two times, milliseconds apart, as torchrun's processes do."""
    chance, run, stops = random.Random(5), tmp_path / "run", 0
    while stops < 6:
        resume = ("--resume",) if stops else ()
        running = launching.Forked(corpus.folder, run, *resume, processes=2)
        before = launching.last_step(run / "metrics.jsonl")
        while running.alive and launching.last_step(run / "metrics.jsonl") < before + 2:
            time.sleep(0.002)
        running.signal(chance.choice([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]))
        time.sleep(chance.random() * 0.02)
        running.signal(signal.SIGTERM)
        running.finish()
        stops += 1
        stopped_at = launching.last_step(run / "metrics.jsonl")
        assert (run / "checkpoints" / f"step-{stopped_at:08d}").is_dir()
        if (run / "model").exists():
            break
    assert stops >= 4
    launching.Forked(corpus.folder, run, "--resume", processes=2).finish()
    assert_same(run, undisturbed("plain", 2))


def test_torchrun_restarts_a_run_of_which_a_process_is_killed(corpus, undisturbed, tmp_path):
    """Before the first checkpoint, and after it; the lock of the killed run is taken over."""
    run, chance = tmp_path / "run", random.Random(8)
    slow = ("--resume", "--step-seconds", "0.2")
    arguments = launching.command(corpus.folder, run, *slow, processes=2)
    arguments.insert(arguments.index("--standalone"), "--max-restarts=2")
    process = launching.start(arguments)
    for step in (1, 5):
        while launching.last_step(run / "metrics.jsonl") < step:
            assert process.poll() is None, process.communicate()[1].decode()
            time.sleep(0.002)
        workers = psutil.Process(process.pid).children()
        chance.choice(workers).kill()
        assert psutil.wait_procs(workers, timeout=30)[1] == [], "the other one has ended too"
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors.decode()
    assert errors.count(b"has ended: it was killed") >= 2
    assert b"starts at step 0" in errors
    assert b"at step 3" in errors
    assert_same(run, undisturbed("plain", 2))


def test_a_second_run_in_the_same_folder_is_refused_on_every_process(corpus, tmp_path):
    run = tmp_path / "run"
    with lock_folder(run):
        running = launching.Forked(corpus.folder, run, "--resume", processes=2)
        assert running.end(timeout=120) == [1, 1]
    assert running.errors.count("is being written by another command") == 1
    assert not run.exists()


def test_one_and_two_processes_count_the_same_things(undisturbed):
    """The same global batches: counts and tokens are equal, losses to rounding and dropout."""
    one, two = (launching.losses(undisturbed("plain", n) / "metrics.jsonl") for n in (1, 2))
    for step in one:
        for name in one[step]:
            if name.endswith("/count") or name in ("tokens", "total_tokens", "learning_rate"):
                assert one[step][name] == two[step][name]
    assert one[1]["mlm/loss"] == pytest.approx(two[1]["mlm/loss"], rel=0.05)
    # with a tenth of the tokens, most micro-batches of the second stage have no TLM target
    counts = [two[step].get("tlm/count", 0) for step in range(driver.STEPS[0] + 1, len(two) + 1)]
    assert 0 in counts
    assert any(counts)


@pytest.mark.parametrize(
    ("mix", "objective"),
    [("contrast", "moco"), ("knowledge", "entity"), ("knowledge", "entailment")],
)
def test_two_processes_enqueue_the_same_keys_in_the_same_order(undisturbed, mix, objective):
    """Some micro-batches have no pairs at all, and no process waits for ever."""
    one, two = (last_weights(undisturbed(mix, number)) for number in (1, 2))
    items = f"objectives.{objective}.queue.items"
    assert torch.equal(one[items], two[items])
    assert (one[items] != NO_ITEM).all()
    pointer = f"objectives.{objective}.queue.pointer"
    assert torch.equal(one[pointer], two[pointer])
    steps = launching.losses(undisturbed(mix, 2) / "metrics.jsonl").values()
    counts = [step.get(f"{objective}/count", 0) for step in steps]
    if objective != "entailment":
        assert any(0 < count < 4 for count in counts), "some of the four micro-batches have none"


def last_weights(run):
    (last,) = sorted((run / "checkpoints").glob("step-*"))[-1:]
    return Checkpoint(last).read()


def test_what_a_run_with_slots_records_and_exports(undisturbed):
    run = undisturbed("slots", 1)
    first, second = driver.SLOTS_STEPS
    found = launching.losses(run / "metrics.jsonl")
    for step in range(1, first + 1):
        both = found[step]["camlm/source_loss"], found[step]["camlm/target_loss"]
        assert min(both) <= found[step]["camlm/loss"] <= max(both)
    for step in range(first + 1, first + second + 1):
        assert 0 <= found[step]["btmlm/copied"] <= 1
        assert 0 <= found[step]["btmlm/in_script"] <= 1
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    held_out = [line["step"] for line in lines if "valid/btmlm/mean/perplexity" in line]
    assert held_out == [first + second]
    model = AutoModelForMaskedLM.from_pretrained(run / "model")
    assert type(model).__name__ == "XLMRobertaForMaskedLM"
    assert language_embeddings.used_on(run / "model") == "slots"
    trained = last_weights(run)
    assert trained["encoder.languages.weight"].any()
    name = "roberta.encoder.layer.0.attention.self.query.weight"
    assert torch.equal(model.state_dict()[name], trained[f"encoder.model.{name}"])
    card = (run / "model/README.md").read_text(encoding="utf-8")
    assert "outputs are those of training" in card
