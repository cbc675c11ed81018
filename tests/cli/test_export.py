"""`isoglot export` as people run it."""

import shutil

import pytest
import torch
from transformers import AutoModel, AutoTokenizer


@pytest.fixture
def stopped(isoglot, raw):
    """A run of a few steps without its model, as after Ctrl-C."""
    assert isoglot("prepare", "prepare.yaml", "--out", "corpus").code == 0
    said = isoglot("pretrain", "few.yaml", "--corpus", "corpus", "--out", "runs/few")
    assert said.code == 0, said.err
    shutil.rmtree(raw / "runs/few/model")
    return raw


def test_a_stopped_run_and_its_sentence_vectors(isoglot, stopped):
    said = isoglot("evaluate", "runs/few", "--pairs", "raw/pairs/aa-bb.tsv")
    assert said.code == 1
    assert "get the model of its newest checkpoint: isoglot export runs/few." in said.err
    shutil.rmtree(stopped / "corpus")
    said = isoglot("export", "runs/few")
    assert said.code == 0, said.err
    place = "runs/few/exports/step-00000004"
    assert said.out == f"checkpoint of step 4\ntransformers: {place}/model\n"
    both = "transformers,sentence-transformers"
    pairs = ("--pairs", "raw/pairs/aa-bb.tsv", "--layers", "last")
    said = isoglot("export", "runs/few", "--format", both, *pairs, "--to", "out")
    assert said.code == 0, said.err
    assert "layer   mean" in said.out
    assert "(chosen)" in said.out
    assert "sentence-transformers: out/sentence-transformers" in said.out
    (text,) = AutoTokenizer.from_pretrained("out/model")(["ka lo"])["input_ids"]
    with torch.no_grad():
        states = AutoModel.from_pretrained("out/model")(torch.tensor([text])).last_hidden_state
    assert states.shape == (1, len(text), 32)
    # what was exported is a model of its own for the other commands
    said = isoglot("evaluate", "out", "--pairs", "raw/pairs/aa-bb.tsv", "--out", "scores.json")
    assert said.code == 0, said.err


def test_mistakes_are_answered_in_a_sentence(isoglot, workdir):
    for arguments, answer in {
        ("--checkpoint", "newest"): "write last, best or the number of a step",
        ("--pooling", "max"): "--pooling max: write auto, mean or cls",
        ("--layers", "7"): "--layers 7: write all or last",
        ("--format", "onxn"): "There is no format 'onxn': did you mean 'onnx'?",
        ("--format", ","): "Name a format",
        (): "There is no folder runs.",
    }.items():
        said = isoglot("export", "runs/none", *arguments)
        assert said.code == 1
        assert said.err.startswith("isoglot: ")
        assert answer in said.err
    assert list(workdir.iterdir()) == []
