"""Recipes: YAML in, checked settings out. `extends:`, `--set`, and every fault at once.

    file --read, extend--> document --set--> document --structure--> Recipe | PrepareConfig

Importing this costs little; torch and transformers come in with the first recipe that is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot import yaml_text
from isoglot.argument_names import public
from isoglot.errors import RecipeError
from isoglot.recipe import document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.corpus.pipeline.plan import PrepareConfig
    from isoglot.pretraining.config import Recipe


@public
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

    named_otherwise = path.suffix not in (".yaml", ".yml") and path.exists()
    try:
        found = document.read(path)
    except RecipeError as error:
        if not named_otherwise:
            raise
        raise RecipeError(_no_prepare_file(path)) from error
    if named_otherwise and "sources" not in found.data:
        raise RecipeError(_no_prepare_file(path))
    return structure(document.with_settings(found, settings), PrepareConfig)


def _no_prepare_file(path: Path) -> str:
    """A sentence on a file of text, or a folder, where a prepare file is expected; and one."""
    files = f"{path}/*.txt" if path.is_dir() else str(path)
    source = f"kind: text, format: lines, files: {{en: [{files}]}}"
    if ".tsv" in path.suffixes:
        source = f"kind: pairs, format: tsv, files: {{en-sw: [{files}]}}"
    return (
        f"{path} is not a prepare file, which is a YAML file that names the files of text and "
        "translations by language. The shortest one, with your languages, in a file of its own "
        "(names are relative to it):\n"
        f"  sources: {{mine: {{{source}}}}}\n"
        "  tokenizer: {vocab_size: 32000}\n"
        "docs/prepare.md and isoglot prepare --help have more."
    )


def dump(settings: Any) -> str:
    """Settings as YAML, complete: nothing is left to defaults."""
    from isoglot.recipe.structure import plain

    return yaml_text.write(plain(settings))


def recipe_names() -> list[str]:
    """The built-in recipes."""
    return document.built_in()


__all__ = ["dump", "load_prepare", "load_recipe", "recipe_names"]
