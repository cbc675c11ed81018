"""`isoglot transfer` as it is typed, and the corpora that tiny recipes make for themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from isoglot.cli.own_corpus import corpus_for
from isoglot.corpus import Corpus
from isoglot.demo.world import SMALL, generated_corpus
from isoglot.errors import RecipeError
from isoglot.recipe import load_recipe


@pytest.fixture
def runs(desk):
    for number, name in enumerate(("meta", "xlm-seed0", "xlm-seed1")):
        folder = desk / name
        folder.mkdir()
        lines = [
            {"step": step, **{f"valid/mlm/{c} perplexity": (10 + number + k) / step
                              for k, c in enumerate(("en", "de", "mean"))}}
            for step in (1, 2)
        ]  # fmt: skip
        (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return desk


def test_heldout_losses_are_drawn_and_printed(isoglot, runs):
    said = isoglot("transfer", "meta", "xlm-seed0", "xlm-seed1", "--out", "figures/f.svg")
    assert said.code == 0, said.err
    rows = [line.split() for line in said.out.splitlines() if line.startswith(("meta", "xlm"))]
    assert [row[:2] for row in rows] == [["meta", "1"], ["meta", "2"], ["xlm", "1"], ["xlm", "2"]]
    assert rows[0][2:] == ["2.303", "2.398", "0.095"]
    assert "±" in rows[2]
    figure = (runs / "figures/f.svg").read_text(encoding="utf-8")
    assert figure.count("<svg") == 4


def test_faults_are_sentences(isoglot, runs):
    said = isoglot("transfer", "meta", "--tasks", "tatoeba")
    assert said.code == 1
    assert "kept no models along training" in said.err
    said = isoglot("transfer", "meta", "--source", "sw")
    assert "a transfer gap needs 'sw'" in said.err


def test_a_recipe_may_ask_for_a_kind_of_testbed(monkeypatch):
    asked = []

    def note(folder, terminal, *, languages, **settings):
        asked.append((str(folder), languages, settings))
        return folder

    monkeypatch.setattr("isoglot.demo.world.generated_corpus", note)
    for name in ("metaxlm-tiny-meta", "metaxlm-tiny", "mlm-gc-tiny", "unmt-mass-tiny"):
        corpus_for(load_recipe(name), None, Console(quiet=True))
    small = "corpora/testbed-uneven-small-en-es"
    assert asked == [
        ("corpora/testbed-en", ("en",), {}),
        ("corpora/testbed", None, {}),
        ("corpora/testbed-uneven", None, {"uneven": True}),
        (small, ("en", "es"), {"uneven": True, **SMALL}),
    ]
    unknown = load_recipe("mlm-gc-tiny", ["corpus=testbed-unevn"])
    with pytest.raises(RecipeError, match="does not have: did you mean 'uneven'"):
        corpus_for(unknown, None, Console(quiet=True))
    assert corpus_for(load_recipe("metaxlm-tiny"), Path("mine"), Console(quiet=True)) == Path(
        "mine"
    )


def test_a_corpus_of_one_language_has_text_alone(tmp_path):
    folder = generated_corpus(
        tmp_path, Console(quiet=True), languages=("en",), sentences=200, pairs=5, vocabulary=300
    )
    corpus = Corpus.open(folder)
    assert corpus.languages == ("en",)
    assert set(corpus.manifest.sources) == {"text"}
