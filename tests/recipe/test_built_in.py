"""Every built-in recipe loads, says what it is, and survives being written and read."""

from __future__ import annotations

import pytest

from isoglot.pretraining.config import objectives_of
from isoglot.recipe import dump, load_recipe, recipe_names
from isoglot.recipe.explain import explained


def test_there_are_recipes():
    assert {"tiny", "xlm", "xlm-mlm", "mbert"} <= set(recipe_names())


@pytest.mark.parametrize("name", recipe_names())
def test_it_resolves(name):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.summary
    assert recipe.paper
    assert recipe.differs
    assert all((stage.steps or stage.epochs or 0) > 0 for stage in recipe.stages)
    assert objectives_of(recipe)
    assert recipe.batch.rows % recipe.batch.micro_batch_rows == 0


@pytest.mark.parametrize("name", recipe_names())
@pytest.mark.parametrize("write", [dump, explained])
def test_what_is_written_reads_the_same(name, write, tmp_path):
    recipe = load_recipe(name)
    file = tmp_path / "again.yaml"
    file.write_text(write(recipe), encoding="utf-8")
    assert load_recipe(str(file)) == recipe


def test_an_extended_recipe_keeps_what_it_does_not_change():
    base, change = load_recipe("xlm"), load_recipe("xlm-mlm")
    assert change.optimizer == base.optimizer
    assert set(base.stages[0].streams) == {"text", "parallel"}
    assert set(change.stages[0].streams) == {"text"}
