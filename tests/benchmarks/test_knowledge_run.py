"""The study of XLM-K's tasks, a few steps of it: cells are trained, scored and put in a table."""

from __future__ import annotations

import json

import pytest
from benchmarks.knowledge import run

from isoglot.recipe import load_recipe


@pytest.mark.parametrize("name", ["checkpoint", *run.ALL])
def test_every_recipe_resolves(name):
    recipe = load_recipe(str(run.RECIPES / f"{name}.yaml"))
    assert recipe.name == f"knowledge/{name}"
    if name != "checkpoint":
        control = load_recipe(str(run.RECIPES / f"{run.CONTROL}.yaml"))
        assert recipe.batch == control.batch, "equal tokens"
        assert recipe.stages[0].steps == control.stages[0].steps


@pytest.mark.slow
def test_a_checkpoint_and_a_cell_from_it(tmp_path, monkeypatch):
    sizes = {"num_sentences": 300, "num_pairs": 50, "num_pages": 80, "vocab_size": 300}
    monkeypatch.setattr(run, "SIZES", sizes)
    run.corpus_in(tmp_path)
    run.cell(tmp_path, "checkpoint", 0, 2)
    told = run.cell(tmp_path, "mep", 1, 2)
    assert "links heads" in told
    found = json.loads((tmp_path / "results/mep-1.json").read_text())
    assert set(found["scores"]) == {
        "facts open",
        "facts typed",
        "links states",
        "links fitted",
        "links heads",
    }
    assert all(0 <= value <= 100 for value in found["scores"].values())
    lines = run.table(tmp_path).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| checkpoint", "| mep"]
    assert lines[2].endswith("– |")
