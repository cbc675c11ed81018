"""Every built-in recipe is trained for two steps a stage, on a corpus in all its languages."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest
from rich.console import Console

from isoglot.api import pretrain
from isoglot.corpus import Corpus
from isoglot.pretraining.config import objectives_of
from isoglot.pretraining.train_step import StepResult
from isoglot.recipe import load_recipe, recipe_names
from tests.recipe.recipe_world import FEW, languages_of, make_world, small, write_inputs

ONE_OF_EACH = ("xlm", "xlm-k", "ernie-m", "mlm-gc", "metaxlm-dict", "ppa", "unmt-mass")
LEFT_OUT = "which are left out"
IN_MANY = ("xlm-k-100", "ernie-m-15")
"""Recipes that name many languages."""


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_world(tmp_path_factory.mktemp("few"), FEW)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    named = set().union(*(languages_of(load_recipe(name)) for name in recipe_names()))
    return make_world(tmp_path_factory.mktemp("many"), FEW | named)


def run(name: str, world: Corpus, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Train a recipe: all objectives have losses that are numbers; gives what the console shows."""
    monkeypatch.chdir(world.folder.parent)
    recipe = small(load_recipe(name))
    write_inputs(world, recipe)
    said, steps = io.StringIO(), list[StepResult]()
    console = Console(file=said, width=2000)
    outcome = pretrain(recipe, world, folder, console=console, on_step=steps.append)
    assert outcome.model is not None
    assert (outcome.model / "config.json").is_file()
    assert [step.step for step in steps] == [1, 2] * len(recipe.stages)
    losses = {name: loss for step in steps for name, loss in step.losses.items()}
    assert set(losses) >= set(objectives_of(recipe))
    assert all(math.isfinite(loss) for step in steps for loss in step.losses.values())
    return said.getvalue()


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_one_of_each_system(name, few, tmp_path, monkeypatch):
    assert LEFT_OUT not in run(name, few, tmp_path / "run", monkeypatch)


def test_languages_that_a_corpus_lacks_are_told_once_and_left_out(few, tmp_path, monkeypatch):
    said = run("xlm-k-100", few, tmp_path / "run", monkeypatch)
    assert said.count(LEFT_OUT) == 1
    (note,) = (line for line in said.splitlines() if LEFT_OUT in line)
    missing = languages_of(load_recipe("xlm-k-100")) - set(few.languages)
    assert set(note.rstrip(".").partition(": ")[2].split(": ")[-1].split(", ")) == missing


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in recipe_names() if name not in ONE_OF_EACH])
def test_it_trains(name, request, tmp_path, monkeypatch):
    in_few = languages_of(load_recipe(name)) <= FEW
    world = request.getfixturevalue("few" if in_few else "many")
    assert LEFT_OUT not in run(name, world, tmp_path / "run", monkeypatch)


def test_some_recipes_name_many_languages():
    """Whatever languages a recipe names, the corpus of `test_it_trains` has them."""
    languages = [languages_of(load_recipe(name)) for name in IN_MANY]
    assert [len(found) for found in languages] == [100, 15 + 14]
    assert {"nan", "yue", "be_tarask"} <= languages[0]
