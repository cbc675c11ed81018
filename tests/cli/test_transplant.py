"""The verbs that change a model's vocabulary, as they are typed."""

from __future__ import annotations

import json

import pytest

from tests.models.transplant.tiny_tokenizers import model_for, of_words, opened

WORDS = ["house", "big", "dog", "the"]


@pytest.fixture
def models(workdir):
    model_for(of_words("bytes", workdir / "english", WORDS))
    of_words("unigram", workdir / "many", [*WORDS, "nyumba", "Dog", "zzz"], "nyumba")
    (workdir / "en-sw.txt").write_text("house nyumba\nbig kubwa\n")
    (workdir / "sw.txt").write_text("nyumba kubwa. nyumba!\n")
    return workdir


def test_transplant(isoglot, models):
    said = isoglot("transplant", "english", "-t", "many", "-d", "en-sw.txt", "-o", "new")
    assert said.code == 0, said.err
    assert "▁nyumba ← Ġhouse" in said.out
    assert "en-sw.txt" in said.out
    assert "positions, as before." in said.out
    kinds = json.loads((models / "new/transplant.json").read_text())["kinds"]
    assert kinds["dictionary"] == kinds["case"] == 1
    model, tokenizer = opened(models / "new")
    assert model.config.vocab_size == len(tokenizer)


def test_grow_and_trim(isoglot, models):
    said = isoglot("vocabulary", "grow", "english", "--text", "sw.txt", "-o", "large")
    assert said.code == 0, said.err
    assert {"nyumba", "kubwa"} <= opened(models / "large")[1].get_vocab().keys()
    (models / "words.txt").write_text("kubwa\n")
    said = isoglot("vocabulary", "grow", "english", "-w", "words.txt", "-d", "en-sw.txt", "-o", "b")
    assert "kubwa ← Ġbig" in said.out
    said = isoglot("vocabulary", "trim", "large", "--text", "sw.txt", "-o", "small")
    assert said.code == 0, said.err
    assert "before" in said.out
    assert "parameters" in said.out
    assert "Ġhouse" not in opened(models / "small")[1].get_vocab()


CASES = {
    "a setting that is none": (["--set", "falback=zero"], "did you mean 'fallback'"),
    "a dictionary that is missing": (["-d", "en-sv.txt"], "did you mean 'en-sw.txt'"),
    "no positions": (["--set", "max_positions=0"], "max_positions: must be from 8"),
}


@pytest.mark.parametrize("case", CASES)
def test_faults_are_sentences(isoglot, models, case):
    arguments, message = CASES[case]
    said = isoglot("transplant", "english", "-t", "many", "-o", "new", *arguments)
    assert said.code == 1
    assert message in said.err
    assert not (models / "new").exists()


def test_growing_needs_words(isoglot, models):
    said = isoglot("vocabulary", "grow", "english", "-o", "new")
    assert said.code == 2
    assert "--words" in said.err
