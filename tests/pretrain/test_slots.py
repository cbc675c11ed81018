"""Whole runs with slots: ERNIE-M's two stages, killed and resumed, counted, exported."""

import json

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

from isoglot.models import language_embeddings
from tests.pretrain import driver, processes

FIRST, SECOND = driver.SLOTS_STEPS
LAST = f"checkpoints/step-{FIRST + SECOND:08d}/weights.safetensors"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    """The run that nobody kills, on one process and on two."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for number in (1, 2):
        run = folder / str(number)
        processes.finish(processes.command(corpus.folder, run, "--mix", "slots", processes=number))
    return folder


@pytest.mark.parametrize("number", [1, 2])
def test_killed_in_either_stage(corpus, undisturbed, tmp_path, number):
    """Checkpoints are three steps apart: each time some steps are run, and drawn, again."""
    run, metrics = tmp_path / "run", tmp_path / "run/metrics.jsonl"
    options = ["--mix", "slots"]
    for step in (5, FIRST + 4):
        running = processes.Forked(corpus.folder, run, *options, processes=number)
        assert processes.kill_at_step(running, metrics, step, delay=0.01)
        options = ["--mix", "slots", "--resume"]
    processes.Forked(corpus.folder, run, *options, processes=number).finish()
    other = undisturbed / str(number)
    assert processes.losses(metrics) == processes.losses(other / "metrics.jsonl")
    found, expected = load_file(run / LAST), load_file(other / LAST)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)


def test_what_a_run_notes(undisturbed):
    found = processes.losses(undisturbed / "1/metrics.jsonl")
    for step in range(1, FIRST + 1):
        noted = found[step]
        both = noted["camlm/source loss"], noted["camlm/target loss"]
        assert min(both) <= noted["camlm/loss"] <= max(both)
    for step in range(FIRST + 1, FIRST + SECOND + 1):
        assert 0 <= found[step]["btmlm/copied"] <= 1
        assert 0 <= found[step]["btmlm/in script"] <= 1
    text = (undisturbed / "1/metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    held_out = [line for line in lines if "valid/btmlm/mean perplexity" in line]
    assert [line["step"] for line in held_out] == [FIRST + SECOND]


def test_the_exported_folder_is_a_plain_encoder(undisturbed):
    folder = undisturbed / "1/model"
    model = AutoModelForMaskedLM.from_pretrained(folder)
    assert type(model).__name__ == "XLMRobertaForMaskedLM"
    assert language_embeddings.used_on(folder) == "slots"
    trained = load_file(undisturbed / "1" / LAST)
    assert trained["encoder.languages.weight"].any()
    name = "roberta.encoder.layer.0.attention.self.query.weight"
    assert torch.equal(model.state_dict()[name], trained[f"encoder.model.{name}"])
    said = (folder / "README.md").read_text(encoding="utf-8")
    assert "outputs are those of training" in said
