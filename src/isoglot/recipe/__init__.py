"""Recipes: YAML in, checked settings out. `extends:`, `--set`, and every fault at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from isoglot.corpus import PrepareConfig
from isoglot.recipe import document
from isoglot.recipe.schema import Recipe
from isoglot.recipe.structure import plain, structure

if TYPE_CHECKING:
    from collections.abc import Sequence


def load_recipe(name: str, settings: Sequence[str] = ()) -> Recipe:
    """A recipe by its built-in name or its path, changed by `a.b=value` settings."""
    found = document.read(document.find(name))
    return structure(document.with_settings(found, tuple(settings)), Recipe)


def load_prepare(path: Path, settings: Sequence[str] = ()) -> PrepareConfig:
    """The settings of a preparation from a file."""
    return structure(document.with_settings(document.read(path), tuple(settings)), PrepareConfig)


def dump(settings: Any) -> str:
    """Settings as YAML, complete: nothing is left to defaults."""
    return yaml.safe_dump(plain(settings), sort_keys=False, allow_unicode=True)


def recipe_names() -> list[str]:
    """The built-in recipes."""
    return document.built_in()


__all__ = ["Recipe", "dump", "load_prepare", "load_recipe", "recipe_names"]
