"""A model exported from a checkpoint is the one that the run itself exports, byte for byte."""

import io
import json
import shutil
import threading
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from rich.console import Console
from safetensors.torch import load_file

from isoglot.corpus import Corpus
from isoglot.errors import CheckpointError, CorpusError, IsoglotError
from isoglot.exporting import export_model
from isoglot.locks import lock_folder
from isoglot.models import objective_heads
from isoglot.pretraining.monitoring.records import corpus_origin, recorded_corpus
from isoglot.pretraining.processes.distributed import DistributedConfig
from tests.exporting.conftest import train
from tests.pretraining import driver
from tests.pretraining.groups import Group

QUERY = "roberta.encoder.layer.0.attention.self.query.weight"


def steps(run):
    return sorted(int(path.name.removeprefix("step-")) for path in (run / "checkpoints").iterdir())


def assert_same_folder(one, other):
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.fixture
def copied(run, tmp_path):
    """A copy of the run, to be changed."""
    folder = tmp_path / "runs/mine"
    shutil.copytree(run, folder)
    return folder


def test_the_best_checkpoint_is_what_the_run_exported(copied):
    best, last = steps(copied)
    done = export_model(copied, checkpoint="best", console=Console(quiet=True))
    assert done.step == best
    assert done.folders == {"transformers": copied / f"exports/step-{best:08d}/model"}
    assert_same_folder(done.folders["transformers"], copied / "model")
    newest = export_model(copied, console=Console(quiet=True))
    assert newest.step == last
    weights = load_file(copied / f"checkpoints/step-{last:08d}/weights.safetensors")
    found = load_file(newest.folders["transformers"] / "model.safetensors")
    assert found[QUERY].equal(weights[f"encoder.model.{QUERY}"])
    assert not found[QUERY].equal(load_file(copied / "model/model.safetensors")[QUERY])
    assert not (copied / ".lock").exists()


def test_it_needs_no_corpus(run, corpus, tmp_path):
    away = tmp_path / "mine"
    shutil.copytree(run, away)
    found = corpus_origin(away)
    assert found is not None
    assert found.folder == corpus.folder.resolve()
    (away / "corpus/origin.json").write_text('{"folder": "gone"}')
    best, _ = steps(away)
    assert corpus_origin(away) is None
    recorded = recorded_corpus(away)
    assert recorded is not None
    assert recorded.languages == corpus.languages
    done = export_model(away, tmp_path / "out", checkpoint=best, console=Console(quiet=True))
    assert done.folders == {"transformers": tmp_path / "out"}
    assert_same_folder(tmp_path / "out", away / "model")


def test_a_run_that_is_being_trained_is_only_read(copied):
    shown = io.StringIO()
    held, let_go = threading.Event(), threading.Event()

    def hold():
        with lock_folder(copied):
            held.set()
            let_go.wait(60)

    trainer = threading.Thread(target=hold)
    trainer.start()
    try:
        held.wait(60)
        before = (copied / ".lock").read_bytes()
        done = export_model(copied, console=Console(file=shown, width=200))
        assert (copied / ".lock").read_bytes() == before
    finally:
        let_go.set()
        trainer.join()
    assert done.step == steps(copied)[-1]
    assert "is in use or read-only: its newest checkpoint is read" in shown.getvalue()


def test_a_damaged_newest_checkpoint_is_passed_over(copied):
    best, last = steps(copied)
    file = copied / f"checkpoints/step-{last:08d}/weights.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    shown = io.StringIO()
    done = export_model(copied, console=Console(file=shown, width=300))
    assert done.step == best
    assert "is damaged" in shown.getvalue()
    with pytest.raises(CheckpointError, match="is damaged"):
        export_model(copied, checkpoint=last, console=Console(quiet=True))


def test_what_is_not_there_is_said(copied, corpus, tmp_path):
    quiet = Console(quiet=True)
    best, last = steps(copied)
    with pytest.raises(CheckpointError, match=f"Give `checkpoint` one of: {best}, {last}"):
        export_model(copied, checkpoint=7, console=quiet)
    (copied / "corpus/manifest.json").rename(copied / "manifest.kept")
    with pytest.raises(CorpusError, match=r"does not know its corpus.*corpus=FOLDER"):
        export_model(copied, console=quiet)
    # as a run of an earlier version
    done = export_model(copied, corpus=corpus.folder, checkpoint="best", console=quiet)
    assert_same_folder(done.folders["transformers"], copied / "model")
    (copied / "recipe.yaml").unlink()
    with pytest.raises(IsoglotError, match=r"recipe.yaml is missing"):
        export_model(copied, console=quiet)
    empty = tmp_path / "empty"
    (empty / "checkpoints").mkdir(parents=True)
    with pytest.raises(IsoglotError, match="the run has not finished"):
        export_model(empty, console=quiet)


def test_a_run_that_did_not_look_for_its_best(copied):
    for file in copied.glob("checkpoints/*/state.json"):
        content = json.loads(file.read_text().split("\n")[1])
        del content["heldout"]  # as other runs and earlier versions write it
        text = json.dumps(content)
        file.write_text(f"{sha256(text.encode()).hexdigest()}\n{text}\n")
    quiet = Console(quiet=True)
    with pytest.raises(CheckpointError, match="has not looked for its best checkpoint"):
        export_model(copied, checkpoint="best", console=quiet)
    assert export_model(copied, console=quiet).step == steps(copied)[-1]


@pytest.mark.slow
@pytest.mark.parametrize("mix", ["slots", "seq2seq", "knowledge"])
def test_every_kind_of_model(mix, corpus, knowing, tmp_path):
    """Slots have language embeddings, seq2seq a decoder, knowledge the heads of objectives."""
    data = knowing if mix == "knowledge" else corpus
    run = tmp_path / "run"
    train(driver.MIXES[mix](), data, run)
    done = export_model(run, tmp_path / "out", console=Console(quiet=True))
    assert_same_folder(tmp_path / "out", run / "model")
    assert not done.notes or "language embeddings" in done.notes[0]
    if mix == "knowledge":
        assert set(objective_heads.load(tmp_path / "out")) == {"entity", "entailment"}
        (run / "corpus/origin.json").write_text("{}")
        without = export_model(run, tmp_path / "other", console=Console(quiet=True))
        assert "the heads of entity, entailment are not in the folder" in without.notes[0]
        name = "model.safetensors"
        assert (tmp_path / "other" / name).read_bytes() == (run / "model" / name).read_bytes()


def train_sharded(_: object, corpus: Path, run: Path) -> None:
    config = replace(driver.config(), distributed=DistributedConfig(strategy="fsdp"))
    config = replace(config, stages=(replace(config.stages[0], steps=2),))
    train(config, Corpus.open(corpus), run)


@pytest.mark.slow
def test_one_process_exports_what_four_have_sharded(corpus, tmp_path):
    run = tmp_path / "run"
    group = Group(train_sharded, tmp_path, corpus.folder, run, processes=4)
    assert group.end(120) == [0] * 4, "".join(map(group.said, range(4)))
    assert len(list((run / "checkpoints/step-00000002").glob("weights-*"))) == 4
    export_model(run, tmp_path / "out", console=Console(quiet=True))
    assert_same_folder(tmp_path / "out", run / "model")
