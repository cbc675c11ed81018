"""The corpus that a recipe is trained on: the one given, or the recipe's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.errors import RecipeError

if TYPE_CHECKING:
    from rich.console import Console

    from isoglot.recipe.schema import Recipe


def corpus_for(recipe: Recipe, given: Path | None, terminal: Console) -> Path:
    """The folder of a prepared corpus; the testbed's is made where it is not there yet."""
    if given is not None:
        return given
    name = recipe.corpus or ""
    if name == "testbed" or name.startswith("testbed-"):
        from isoglot.demo.world import named_corpus

        return named_corpus(name, Path("corpora") / name, terminal)
    if recipe.corpus is None:
        raise RecipeError(
            f"the recipe {recipe.name!r} names no corpus: give one with --corpus FOLDER "
            f"(`isoglot prepare` makes it)."
        )
    return Path(recipe.corpus)
