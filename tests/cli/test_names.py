"""Every command that takes a model, a run or a corpus takes the same names for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import all_commands

MODELS = {
    "adapt": ["MODEL", "--text", "en=aa-bb.tsv", "--out", "new"],
    "evaluate": ["MODEL", "--pairs", "aa-bb.tsv"],
    "finetune": ["MODEL", "--tasks", "testbed-nli", "--protocol", "testbed"],
    "translate": ["MODEL", "--from", "aa", "--to", "bb"],
    "align": ["aa-bb.tsv", "--model", "MODEL"],
    "explore": ["MODEL", "--no-browser", "--port", "0"],
    "export": ["MODEL", "--format", "sentence-transformers", "--to", "new"],
    "mine": ["aa-bb.tsv", "aa-bb.tsv", "--model", "MODEL", "--out", "pairs.tsv"],
    "show model": ["MODEL"],
    "transplant": ["MODEL", "--tokenizer", "corpora/bed", "--out", "new"],
    "vocabulary grow": ["MODEL", "--words", "aa-bb.tsv", "--out", "new"],
    "vocabulary trim": ["MODEL", "--text", "aa-bb.tsv", "--out", "new"],
    "pretrain": ["start.yaml", "--set", "model.init_from=MODEL"],
    "study": ["start.yaml", "--tasks", "testbed-nli", "--protocol", "testbed"],
    "prepare": ["prepare.yaml", "--out", "new", "--set", "tokenizer.folder=MODEL"],
}
RUNS = {
    "analyze plot": ["RUN"],
    "analyze transfer": ["RUN"],
    "report": ["RUN"],
    "watch": ["RUN", "--once"],
}
CORPORA = {
    "pretrain": ["tiny", "--corpus", "CORPUS"],
    "study": ["tiny", "--corpus", "CORPUS", "--tasks", "testbed-nli", "--protocol", "testbed"],
    "show corpus": ["CORPUS"],
    "show batch": ["tiny", "--corpus", "CORPUS"],
    "cooccurrence count": ["CORPUS"],
    "cooccurrence phrases": ["CORPUS", "--out", "phrases.npy"],
    "knowledge link": ["tables", "--corpus", "CORPUS"],
    "knowledge heldout": ["CORPUS", "--out", "heldout"],
}
OTHERS = {
    *("demo", "fetch", "knowledge extract", "knowledge graph"),
    *(f"show {what}" for what in ("recipes", "objectives", "streams", "tasks", "protocols")),
    *("show recipe", "show protocol", "show objective", "show template"),
}
"""Commands that take neither a model, nor a run, nor a corpus."""


@pytest.fixture
def files(workdir, corpus) -> Path:
    shutil.copytree(corpus.folder, workdir / "corpora/bed/corpus")
    (workdir / "corpora/bed/raw").mkdir()
    for name in ("models/english", "runs/done/model", "tables"):
        (workdir / name).mkdir(parents=True)
    (workdir / "models/english/config.json").write_text("{}")
    (workdir / "aa-bb.tsv").write_text("ka\tбо\n", encoding="utf-8")
    (workdir / "start.yaml").write_text(
        "extends: tiny\nname: start\nmodel: {size: null, init_from: models/englisch}\n"
    )
    (workdir / "prepare.yaml").write_text(
        "sources: {t: {kind: text, format: lines, files: {aa: [aa-bb.tsv]}}}\n"
    )
    return workdir


def test_every_command_is_tried():
    assert {*MODELS, *RUNS, *CORPORA, *OTHERS} == all_commands()


@pytest.mark.parametrize("command", MODELS)
def test_a_model_that_is_not_there(isoglot, files, command):
    arguments = [word.replace("MODEL", "models/englisch") for word in MODELS[command]]
    said = isoglot(*command.split(), *arguments)
    assert said.code == 1
    assert said.err.startswith("isoglot: ")
    assert "no folder models/englisch; did you mean 'english'?" in said.err
    assert not (files / "corpora/testbed").exists()


@pytest.mark.parametrize("command", sorted(set(MODELS) - {"study", "pretrain", "prepare"}))
def test_a_run_that_a_recipe_makes(isoglot, files, command):
    arguments = [word.replace("MODEL", "runs/metaxlm-tiny-meta") for word in MODELS[command]]
    said = isoglot(*command.split(), *arguments)
    assert said.code == 1
    assert "Make it first: isoglot pretrain metaxlm-tiny-meta" in said.err


@pytest.mark.parametrize(
    "recipe", ["metaxlm-tiny", "metaxlm-tiny-dict", "ablations/metaxlm-tiny-kd"]
)
def test_a_recipe_names_what_it_needs_before_any_work(isoglot, workdir, recipe):
    said = isoglot("pretrain", recipe)
    assert said.code == 1
    assert "Make it first: isoglot pretrain metaxlm-tiny-meta" in said.err
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("command", RUNS)
def test_a_run_that_is_not_there(isoglot, files, command):
    said = isoglot(*command.split(), "runs/donne")
    assert said.code == 1
    assert "no folder runs/donne; did you mean 'done'?" in said.err


@pytest.mark.parametrize("command", CORPORA)
def test_a_corpus_that_is_not_there(isoglot, files, command):
    arguments = [word.replace("CORPUS", "corpora/bad") for word in CORPORA[command]]
    said = isoglot(*command.split(), *arguments)
    assert said.code == 1
    assert "corpora/bad: is not a prepared corpus: " in said.err
    assert "no folder corpora/bad; did you mean 'bed'?" in said.err


@pytest.mark.parametrize("command", ["show corpus", "cooccurrence count", "cooccurrence phrases"])
def test_a_corpus_one_folder_deeper(isoglot, files, command):
    arguments = [word.replace("CORPUS", "corpora/bed") for word in CORPORA[command]]
    said = isoglot(*command.split(), *arguments)
    assert said.code == 0, said.err
    # counts are kept in the corpus itself
    expected = command == "cooccurrence count"
    assert (files / "corpora/bed/corpus/cooccurrence").exists() == expected
    assert not (files / "corpora/bed/cooccurrence").exists()
