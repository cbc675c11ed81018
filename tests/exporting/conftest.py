from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from isoglot.pretraining.config import PretrainConfig, Recipe
from isoglot.pretraining.run import pretrain
from isoglot.recipe import dump
from tests.pretraining import driver
from tests.tiny_corpus import words

if TYPE_CHECKING:
    from isoglot.corpus import Corpus


def train(config: PretrainConfig, corpus: Corpus, folder: Path) -> None:
    """A run with its recipe, as the command line leaves it."""
    settings = {one.name: getattr(config, one.name) for one in fields(config)}
    recipe = Recipe(name="mine", **settings)
    console = Console(quiet=True)
    pretrain(recipe, corpus, folder, name="mine", recipe_text=dump(recipe), console=console)


@pytest.fixture(scope="session")
def run(corpus, tmp_path_factory) -> Path:
    """A run that has stopped early, shared: its best checkpoint is not its last."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    train(driver.stopping(), corpus, folder)
    return folder


@pytest.fixture
def pairs(tmp_path) -> Path:
    """Translations, word for word."""
    first, second = words("aa"), words("bb")
    rows = [
        (f"{first[i]} {first[-i]} {first[i // 2]}", f"{second[i]} {second[-i]} {second[i // 2]}")
        for i in range(1, 111)
    ]
    file = tmp_path / "aa-bb.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    return file
