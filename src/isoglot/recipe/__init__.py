"""Recipes: YAML in, checked settings out. `extends:`, `--set`, and every fault at once.

    file --read, extend--> document --set--> document --structure--> Recipe | PrepareConfig

Importing this costs little; torch and transformers come in with the first recipe that is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot import yaml_text
from isoglot.recipe import document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.corpus.pipeline.plan import PrepareConfig
    from isoglot.pretraining.config import Recipe


def load_recipe(name: str, settings: Sequence[str] = ()) -> Recipe:
    """A recipe by its built-in name or its path, changed by `a.b=value` settings."""
    from isoglot.pretraining.config import Recipe
    from isoglot.recipe.structure import structure

    found = document.read(document.find(name))
    return structure(document.with_settings(found, settings), Recipe)


def load_prepare(path: Path, settings: Sequence[str] = ()) -> PrepareConfig:
    """The settings of a preparation from a file."""
    from isoglot.corpus.pipeline.plan import PrepareConfig
    from isoglot.recipe.structure import structure

    return structure(document.with_settings(document.read(path), settings), PrepareConfig)


def dump(settings: Any) -> str:
    """Settings as YAML, complete: nothing is left to defaults."""
    from isoglot.recipe.structure import plain

    return yaml_text.write(plain(settings))


def recipe_names() -> list[str]:
    """The built-in recipes."""
    return document.built_in()


__all__ = ["dump", "load_prepare", "load_recipe", "recipe_names"]
