"""`batch.micro_rows: auto` in a study: recipes with the same batch share one number.

A control reads exactly the examples of its recipe only if its rows are packed alike, so the number
is that which fits all of them, or a whole step where an objective compares its examples. It is kept
in OUT/micro_rows.json: the same command goes on with the same numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from isoglot import json_text
from isoglot.atomic import write_json
from isoglot.corpus import Corpus
from isoglot.errors import RecipeError
from isoglot.pretraining.config import objectives_of
from isoglot.pretraining.estimates.estimate import find_micro_rows
from isoglot.pretraining.estimates.micro_rows import split_sensitive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from isoglot.pretraining.config import Recipe

_FILE = "micro_rows.json"


def with_micro_rows(
    recipes: Sequence[Recipe],
    corpora: Mapping[str, Path],
    out: Path,
    console: Console,
    *,
    num_parallel: int = 1,
) -> tuple[Recipe, ...]:
    """The recipes with numbers in the place of `auto`.

    Args:
        recipes: of the study, controls included.
        corpora: the corpus of each recipe, by name.
        out: the study's folder.
        console: shows what is tried.
        num_parallel: runs that share the machine's memory.

    Raises:
        RecipeError: the file with the numbers is damaged.
    """
    open_ones = [recipe for recipe in recipes if recipe.batch.micro_rows == "auto"]
    if not open_ones:
        return tuple(recipes)
    known = _read(out / _FILE)
    # runs are shared out among the GPUs, where there are any
    sharing = -(-num_parallel // max(1, torch.cuda.device_count()))
    for batch in dict.fromkeys(recipe.batch for recipe in open_ones):
        alike = [recipe for recipe in open_ones if recipe.batch == batch]
        if str(batch) not in known:
            # a number that is fixed by an objective serves all
            chosen = [one for one in alike if split_sensitive(objectives_of(one))] or alike
            known[str(batch)] = min(
                find_micro_rows(
                    recipe,
                    Corpus.open(corpora[recipe.name]),
                    console,
                    folder=out,
                    sharing=sharing,
                ).number
                for recipe in chosen
            )
            out.mkdir(parents=True, exist_ok=True)
            write_json(out / _FILE, known)
        names = ", ".join(recipe.name for recipe in alike)
        number = known[str(batch)]
        console.print(f"batch.micro_rows: {number} for {names}", highlight=False, soft_wrap=True)
    return tuple(
        replace(recipe, batch=replace(recipe.batch, micro_rows=known[str(recipe.batch)]))
        if recipe in open_ones
        else recipe
        for recipe in recipes
    )


def _read(file: Path) -> dict[str, int]:
    if not file.is_file():
        return {}
    try:
        found = json_text.parse(file.read_text(encoding="utf-8"))
        return {str(batch): int(number) for batch, number in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        raise RecipeError(
            f"{file} is damaged. Write the numbers of the finished runs (recipe.yaml) into the "
            "recipes, or remove it if no run has begun."
        ) from None
