"""Code of a model folder never runs, and no damaged folder ends in a traceback."""

from __future__ import annotations

import io
import shutil
import sys

import pytest

from tests.cli.conftest import SERVING, all_commands
from tests.cli.hostile import add_code, change_json, mutations, pickle_behind_index, pickle_weights
from tests.cli.test_names import MODELS

PREPARE = """\
sources:
  text: {kind: text, format: lines, files: {aa: [text.txt]}}
tokenizer: {folder: evil}
"""
TRAIN = """\
extends: tiny
name: few
model: {size: null, init_from: evil}
batch: {row_length: 32, rows: 2, micro_rows: 2}
stages: [{steps: 1, streams: {text: {objectives: [mlm], unit: sentence}}}]
"""
COMMANDS = {
    "evaluate": ("evaluate", "evil", "--pairs", "aa-bb.tsv", "--out", "results.json"),
    "finetune": ("finetune", "evil", "--tasks", "testbed-nli", "--seeds", "1", "--out", "r.json",
                 "--set", "epochs=1", "--set", "max_train_examples=4", "--selection", "last",
                 "--set", "max_test_examples=4", "-l", "en"),
    "prepare": ("prepare", "prepare.yaml", "--out", "corpus"),
    "pretrain": ("pretrain", "few.yaml", "--corpus", "tiny", "--out", "run"),
    "transplant": ("transplant", "evil", "--tokenizer", "good", "--out", "new"),
    "transplant to": ("transplant", "good", "--tokenizer", "evil", "--out", "new"),
    "trim": ("vocabulary", "trim", "evil", "--text", "text.txt", "--out", "new"),
    "grow": ("vocabulary", "grow", "evil", "--words", "words.txt", "--out", "new"),
    "translate": ("translate", "evil", "--from", "aa", "--to", "bb"),
    "export": ("export", "evil", "--format", "sentence-transformers", "--to", "new"),
    "export onnx": ("export", "evil", "--format", "onnx", "--to", "new"),
    "show": ("show", "model", "evil"),
    "align": ("align", "aa-bb.tsv", "--model", "evil", "--out", "links"),
    "mine": ("mine", "text.txt", "words.txt", "--model", "evil", "--out", "pairs.tsv"),
    "adapt": ("adapt", "evil", "--text", "en=text.txt", "--out", "new", "--dry-run"),
    "study": ("study", "few.yaml", "--corpus", "tiny", "--tasks", "testbed-nli", "--protocol",
              "testbed", "--seeds", "1", "--out", "run"),
}  # fmt: skip


@pytest.fixture
def evil(tiny_model, corpus, workdir):
    """A copy of the model, to damage, in a folder with all that the commands read."""
    shutil.copytree(tiny_model, workdir / "good")
    (workdir / "tiny").symlink_to(corpus.folder)
    (workdir / "text.txt").write_text("ka lo mitu.\nsera ka lo.\n" * 30)
    (workdir / "words.txt").write_text("nyumba\n")
    (workdir / "aa-bb.tsv").write_text("ka lo\tmitu sera\nlo ka\tsera\n")
    (workdir / "prepare.yaml").write_text(PREPARE)
    (workdir / "few.yaml").write_text(TRAIN)
    return shutil.copytree(tiny_model, workdir / "evil")


@pytest.fixture
def run(isoglot, monkeypatch, workdir):
    """Runs a command that is answered `y` if it asks, in a folder without earlier outputs."""

    def call(command: str):
        outputs = ("new", "run", "corpus", "results.json", "r.json", "links", "pairs.tsv")
        for name in outputs:
            place = workdir / name
            shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(True)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"y\n" * 50)))
        return isoglot(*COMMANDS[command])

    return call


def test_every_command_that_reads_a_model_is_tried():
    calls = {" ".join(words[:2]) for words in COMMANDS.values()}
    called = {name for name in all_commands() if any(f"{x} ".startswith(f"{name} ") for x in calls)}
    assert called == set(MODELS) - SERVING


@pytest.mark.parametrize("command", COMMANDS)
def test_code_of_a_folder_never_runs(evil, workdir, run, command):
    marker = workdir / "ran"
    add_code(evil, marker, model_type="evil")
    said = run(command)
    assert not marker.exists()
    assert said.code == 1, said.out + said.err
    assert any(line.startswith("isoglot: ") for line in said.err.splitlines())
    assert "[y/N]" not in said.out + said.err


@pytest.mark.parametrize("command", ["evaluate", "pretrain", "trim"])
def test_code_is_not_needed_for_a_known_architecture(evil, workdir, run, command):
    marker = workdir / "ran"
    add_code(evil, marker, model_type=None)
    change_json(evil / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    said = run(command)
    assert not marker.exists()
    assert said.code == 0, said.err


@pytest.mark.parametrize("change", [pickle_weights, pickle_behind_index])
@pytest.mark.parametrize(
    "command",
    ["evaluate", "finetune", "pretrain", "transplant", "trim", "show", "align", "mine", "adapt"],
)
def test_no_pickle_is_read(evil, workdir, run, command, change):
    marker = workdir / "ran"
    change(evil, marker)
    said = run(command)
    assert not marker.exists()
    assert said.code == 1
    assert "pytorch_model.bin" in said.err
    assert "safetensors" in said.err


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("command", "files", "every"),
    [
        ("evaluate", ("",), 1),
        ("pretrain", ("config", "weights", "index"), 2),
        ("finetune", ("config",), 3),
        ("trim", ("tokenizer", "weights"), 1),
        ("prepare", ("tokenizer",), 1),
        ("show", ("weights", "index"), 1),
        ("align", ("config", "weights", "index"), 3),
        ("mine", ("config", "weights", "index"), 3),
    ],
)
def test_no_damaged_folder_ends_in_a_traceback(evil, workdir, run, command, files, every, recwarn):
    """Each mutation is refused in a sentence or leaves a model that works; nothing else."""
    outcomes, failed = {0: 0, 1: 0}, []
    chosen = [found for found in mutations().items() if found[0].startswith(files)][::every]
    for name, change in chosen:
        shutil.rmtree(evil)
        shutil.copytree(workdir / "good", evil)
        change(evil)
        try:
            said = run(command)
        except (Exception, pytest.fail.Exception) as error:
            failed.append(f"{name}: {error!r}"[:300])
            continue
        outcomes[said.code] += 1
        if (said.code and "isoglot: " not in said.err) or "Traceback" in said.err:
            failed.append(f"{name}: {said.err}"[:300])
    assert not failed, "\n".join(failed)
    assert outcomes[1] > 10
