"""One number of rows at a time for the recipes of a study that share a batch."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from isoglot.corpus import Corpus
from isoglot.errors import RecipeError
from isoglot.objectives.moco import MoCo
from isoglot.pretraining.estimates.micro_rows import MicroRows
from isoglot.recipe import load_recipe
from isoglot.study import shapes
from isoglot.study.controls import mlm_control
from isoglot.study.shapes import with_micro_rows

AUTO = ["batch.micro_rows=auto"]


@pytest.fixture
def tried(monkeypatch):
    """Recipes that were tried; `tiny` is the fastest with 8 rows, its control with 16."""
    names: list[str] = []

    def find(recipe, corpus, console, *, folder, sharing):
        names.append(recipe.name)
        number = {"tiny": 8, "tiny-control": 16, "ppa-tiny": 32}[recipe.name]
        return MicroRows(number=number, reason=f"{sharing} at a time")

    monkeypatch.setattr(shapes, "find_micro_rows", find)
    monkeypatch.setattr(Corpus, "open", lambda folder: folder)
    return names


def resolve(recipes, out):
    console = Console(file=io.StringIO())
    corpora = {recipe.name: out for recipe in recipes}
    found = with_micro_rows(recipes, corpora, out, console)
    assert [recipe.name for recipe in found] == [recipe.name for recipe in recipes]
    return [recipe.batch.micro_rows for recipe in found]


def test_a_control_has_the_rows_of_its_recipe(tried, tmp_path):
    recipe = load_recipe("tiny", AUTO)
    given = load_recipe("xlm")
    recipes = [mlm_control(recipe), recipe, given]
    assert resolve(recipes, tmp_path) == [8, 8, given.batch.micro_rows]
    tried.clear()
    assert resolve(recipes, tmp_path) == [8, 8, given.batch.micro_rows]
    assert tried == []


def test_an_objective_that_compares_examples_decides_for_all(tried, tmp_path):
    contrast = load_recipe("ppa-tiny", AUTO)
    plain = replace(load_recipe("tiny", AUTO), batch=contrast.batch)
    assert resolve([plain, contrast], tmp_path / "whole step") == [8, 8]
    tried.clear()
    moco = contrast.objectives["moco"]
    assert isinstance(moco, MoCo)
    by_itself = replace(moco, negatives="micro_batch")
    contrast = replace(contrast, objectives={**contrast.objectives, "moco": by_itself})
    assert resolve([plain, contrast], tmp_path / "micro-batches") == [32, 32]
    assert tried == ["ppa-tiny"]


def test_a_damaged_file_is_said(tried, tmp_path):
    (tmp_path / "micro_rows.json").write_text("[")
    with pytest.raises(RecipeError, match="is damaged"):
        resolve([load_recipe("tiny", AUTO)], tmp_path)
