"""`adapt` end to end on generated text: bits per character fall; killed and continued, the same."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import threading
import time
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from huggingface_hub import ModelCard as HubCard
from rich.console import Console
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForMaskedLM

from isoglot.adaptation.comparison import BITS, TOKENS
from isoglot.adaptation.folder import AdaptFolder, StepRecords
from isoglot.adaptation.run import adapt
from isoglot.errors import CheckpointError, CorpusError, LockedError, ModelError
from isoglot.locks import lock_folder
from tests.adaptation.small import (
    SmallData,
    hold_out,
    make_data,
    make_plan,
    run_small,
    small_config,
)
from tests.pretraining.launching import FORKING

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

pytestmark = pytest.mark.slow
STEPS = 24
"""Training steps of the adaptations that are interrupted."""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> SmallData:
    return make_data(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def adapted(data, tmp_path_factory):
    """A whole adaptation with a vocabulary that grows: its outcome and what was printed."""
    text = StringIO()
    out = tmp_path_factory.mktemp("adapted") / "out"
    plan = make_plan(data, out, new_words=100)
    return run_small(data, out, plan, Console(file=text, width=200)), text.getvalue()


def weights_of(out: Path) -> dict[str, str]:
    """SHA-256 of every file of both models, but for their cards."""
    return {
        str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest()
        for name in ("model", "sentence-transformers")
        for file in sorted((out / name).rglob("*"))
        if file.is_file() and file.name not in ("README.md", "recipe.yaml")
    }


def scores_of(out: Path) -> dict[str, Any]:
    """scores.json without the speed, which is measured."""
    found: dict[str, Any] = json.loads((out / "scores.json").read_text("utf-8"))
    del found["sentences_per_second"]
    return found


def test_the_new_language_gets_better(adapted):
    outcome, _ = adapted
    assert outcome.finished
    assert not outcome.was_done
    bits = {one.where: one for one in outcome.scores.of(BITS)}
    assert bits["sw"].verdict == "better"
    assert bits["sw"].after < 0.5 * bits["sw"].before
    tokens = {one.where: one for one in outcome.scores.of(TOKENS)}
    assert tokens["sw"].after < 0.6 * tokens["sw"].before, "100 words were added"
    assert tokens["en"].after <= tokens["en"].before


def test_numbers_come_early_and_every_step_is_named(adapted):
    _, text = adapted
    lines = text.splitlines()
    assert lines[0].startswith("[1/9] scoring before")
    assert lines[1].endswith("tokens per word")
    numbered = [line[:5] for line in lines if line.startswith("[")]
    assert numbered == [f"[{n}/9]" for n in range(1, 10)]
    assert any("held out:" in line and "retrieval" in line for line in lines)
    assert "small step 40/40" in text
    times = [line for line in lines if " left" in line]
    assert times
    assert all("left of the whole)" in line for line in times), "one time left, of everything"


def test_both_folders_open_where_users_open_them(adapted):
    outcome, _ = adapted
    _, loading = AutoModelForMaskedLM.from_pretrained(outcome.model, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    vectors = SentenceTransformer(str(outcome.sentence_model), device="cpu").encode(["Moja.", "b"])
    assert vectors.shape == (2, 48)
    for folder in (outcome.model, outcome.sentence_model):
        card = HubCard.load(folder / "README.md")
        found = {(one.metric_type, one.dataset_config) for one in card.data.eval_results or ()}
        assert {("bits-per-character", "sw"), ("bits-per-character", "en")} <= found


def test_the_page_has_scores_curves_plan_and_examples(adapted):
    outcome, _ = adapted
    page = outcome.report.read_text("utf-8")
    for text in (
        "bits per character",
        "held-out perplexity, mlm",
        "held-out retrieval, parallel",
        "a test is short",
        "development pairs, held out of the corpus",
        f"SentenceTransformer(&#34;{outcome.sentence_model}&#34;)",
        "<svg",
    ):
        assert text in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "it needs no other file"


def test_a_second_call_does_nothing(adapted, data):
    outcome, _ = adapted
    before = {file: file.stat().st_mtime_ns for file in outcome.out.rglob("*")}
    text = StringIO()
    again = run_small(
        data, outcome.out, make_plan(data, outcome.out, new_words=100), Console(file=text)
    )
    assert again.was_done
    assert again.scores == outcome.scores
    assert text.getvalue() == ""
    assert {file: file.stat().st_mtime_ns for file in outcome.out.rglob("*")} == before


def test_a_lost_folder_is_written_again_and_nothing_else(adapted, data):
    outcome, _ = adapted
    (outcome.out / "report.html").unlink()
    text = StringIO()
    run_small(
        data,
        outcome.out,
        make_plan(data, outcome.out, new_words=100),
        Console(file=text, width=100),
    )
    assert text.getvalue().split() == ["[9/9]", "writing", "the", "page", "..."]


def test_a_lost_folder_for_sentences_is_written_again_with_its_card(adapted, data):
    outcome, _ = adapted
    folder = AdaptFolder(outcome.out).sentence_model
    card = (folder / "README.md").read_text("utf-8")
    assert "## Before and after" in card
    shutil.rmtree(folder)
    run_small(data, outcome.out, make_plan(data, outcome.out, new_words=100))
    assert (folder / "modules.json").is_file()
    assert (folder / "README.md").read_text("utf-8") == card


def test_another_encoder_does_not_continue_a_run(adapted, data):
    """A training that was begun from other weights is refused, not mixed."""
    outcome, _ = adapted
    folder = AdaptFolder(outcome.out)
    (folder.steps / "train.json").rename(folder.steps / "kept.json")
    begun = (folder.steps / "begun.json").read_bytes()
    StepRecords(folder.steps).finish("begun", {"corpus": "another"}, {}, seconds=0)
    with pytest.raises(CheckpointError, match=r"run was begun with another corpus or encoder"):
        run_small(data, outcome.out, make_plan(data, outcome.out, new_words=100))
    (folder.steps / "begun.json").write_bytes(begun)
    (folder.steps / "kept.json").rename(folder.steps / "train.json")


def _run(data: SmallData, out: Path) -> None:
    """In a process of its own: the command, with a plan that is there already."""
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    plan = make_plan(data, out, steps=STEPS)
    with (
        pytest.MonkeyPatch.context() as patch,
        (out.parent / "log.txt").open("a", encoding="utf-8") as log,
    ):
        patch.setattr("isoglot.adaptation.run.plan_adaptation", lambda *_: plan)
        outcome = adapt(small_config(data), out, console=Console(file=log, width=150))
    (out.parent / "outcome.txt").write_text(outcome.stopped or "finished")


def start(data: SmallData, out: Path) -> ForkServerProcess:
    """Start the command in a process."""
    hold_out(data, AdaptFolder(out))
    process = FORKING.Process(target=_run, args=(data, out))
    process.start()
    assert process.pid is not None
    return process


def finish(data: SmallData, out: Path) -> None:
    """Run the command to its end."""
    process = start(data, out)
    process.join(timeout=200)
    assert process.exitcode == 0
    assert (out.parent / "outcome.txt").read_text() == "finished"


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory) -> Path:
    """The folder of an adaptation that nobody kills."""
    out: Path = tmp_path_factory.mktemp("undisturbed") / "out"
    finish(data, out)
    return out


def wait_for(process: ForkServerProcess, file: Path) -> None:
    """Wait until a file is there and not empty, or the process has ended."""
    while process.is_alive() and not (file.is_file() and file.stat().st_size):
        time.sleep(0.01)


@pytest.mark.filterwarnings("ignore:resource_tracker")
def test_killed_in_every_step_and_continued(data, undisturbed, tmp_path):
    """Scores and bytes of both models are those of a run that nobody kills."""
    out, rng = tmp_path / "out", random.Random(7)
    moments = [
        out / "steps/before.json",
        out / "corpus/manifest.json",
        out / "run/metrics.jsonl",
        out / "steps/train.json",
        out / "development/en-sw.tsv",
    ]
    for file in moments:
        process = start(data, out)
        wait_for(process, file)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        process.join(timeout=60)
        assert process.exitcode in (-signal.SIGKILL, 0), "0: it was done before"
    finish(data, out)
    assert scores_of(out) == scores_of(undisturbed)
    assert weights_of(out) == weights_of(undisturbed)


def test_a_stopped_training_says_so_and_goes_on(data, undisturbed, tmp_path):
    out = tmp_path / "out"
    process = start(data, out)
    wait_for(process, out / "run/metrics.jsonl")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)
    process.join(timeout=60)
    assert process.exitcode == 0
    said = (tmp_path / "outcome.txt").read_text()
    assert said.startswith("training has stopped after step ")
    assert said.endswith(f" of {STEPS}")
    assert not (out / ".lock").exists()
    assert not (out / "model").exists()
    finish(data, out)
    assert "resuming from" in (tmp_path / "log.txt").read_text()
    assert weights_of(out) == weights_of(undisturbed)


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_an_interruption_between_trainings_names_the_step(data, tmp_path, kind):
    out = tmp_path / "out"
    process = start(data, out)
    wait_for(process, out / ".lock")
    while "scoring before" not in (tmp_path / "log.txt").read_text():
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, kind)
    process.join(timeout=60)
    assert process.exitcode == 0
    assert (tmp_path / "outcome.txt").read_text() == "interrupted while scoring before"
    assert not (out / ".lock").exists()


def test_a_folder_that_another_command_writes_is_refused(data, tmp_path):
    def attempt() -> None:
        with pytest.raises(LockedError, match="is being written by another command"):
            adapt(small_config(data), tmp_path / "out", console=Console(file=StringIO()))

    with lock_folder(tmp_path / "out"):
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"encoder": "models/none/there"}, ModelError, r"There is no folder models"),
        (
            {"alignments": ("/nowhere/gold",)},
            CorpusError,
            r"/nowhere/gold: there is no such folder",
        ),
    ],
)
def test_what_cannot_work_is_said_before_a_folder_is_made(data, tmp_path, settings, kind, said):
    with pytest.raises(kind, match=said):
        adapt(small_config(data, **settings), tmp_path / "out", console=Console(file=StringIO()))
    assert not (tmp_path / "out").exists()
