"""Controls of a study: the same model, text and tokens with MLM as the only objective.

A control reads exactly the examples of its recipe: the recipe's objectives stay in `must_fit`,
since their sequences may be longer than MLM's and let fewer pairs into a row.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from isoglot.batching.loader import longest_sequence
from isoglot.errors import RecipeError
from isoglot.objectives import find_objective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.batching.streams import StreamConfig
    from isoglot.pretraining.config import Recipe
    from isoglot.types import IntArray

_MLM = "mlm"


def mlm_control(recipe: Recipe) -> Recipe:
    """The recipe with every objective replaced by MLM on the same streams."""
    readable = find_objective(_MLM).reads
    stages = []
    for stage in recipe.stages:
        for name, stream in stage.streams.items():
            if stream.kind not in readable:
                raise RecipeError(
                    f"MLM cannot read the stream {name!r} ({stream.kind}) of {recipe.name}, so "
                    "--control cannot use the same text. Write the control as a recipe of its own."
                )
        streams = {name: _with_mlm(stream) for name, stream in stage.streams.items()}
        stages.append(replace(stage, streams=streams))
    kept = {_MLM, *(n for s in stages for one in s.streams.values() for n in one.must_fit)}
    objectives = {name: found for name, found in recipe.objectives.items() if name in kept}
    name = f"{recipe.name}-control"
    return replace(recipe, name=name, stages=tuple(stages), objectives=objectives)


def _with_mlm(stream: StreamConfig) -> StreamConfig:
    """The stream under MLM alone, with the examples that fit the rows of its objectives."""
    others = tuple(name for name in (*stream.objectives, *stream.must_fit) if name != _MLM)
    return replace(stream, objectives=(_MLM,), must_fit=others)


def with_controls(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The controls of recipes, then the recipes; shared or given controls appear once."""
    known = {_trained_data(recipe) for recipe in recipes}
    controls: dict[str, Recipe] = {}
    for recipe in recipes:
        control = mlm_control(recipe)
        if _trained_data(control) not in known:
            controls.setdefault(_trained_data(control), control)
    return [*controls.values(), *recipes]


def _trained_data(recipe: Recipe) -> str:
    """Equal for recipes that train alike on the same examples.

    What must fit a row besides counts by the sizes of examples that it lets in, not by name.
    """
    length, digest = recipe.batch.row_length, sha256()
    stages = []
    for stage in recipe.stages:
        for stream in stage.streams.values():
            names = dict.fromkeys((*stream.objectives, *stream.must_fit))
            limiting = [recipe.objectives.get(one) or find_objective(one)() for one in names]
            sizes = _sizes(length, num_texts=2 if stream.kind == "parallel" else 1)
            digest.update((longest_sequence(limiting, sizes) <= length).tobytes())
        streams = {name: replace(one, must_fit=()) for name, one in stage.streams.items()}
        stages.append(replace(stage, streams=streams))
    trained = {n for stage in stages for one in stage.streams.values() for n in one.objectives}
    objectives = {name: one for name, one in recipe.objectives.items() if name in trained}
    plain = replace(recipe, stages=tuple(stages), objectives=objectives)
    return f"{plain.fingerprint()} {digest.hexdigest()}"


def _sizes(row_length: int, *, num_texts: int) -> IntArray:
    """Sizes of examples up to a row, all of them up to 256 tokens."""
    one = np.unique(np.linspace(1, row_length, min(row_length, 256)).astype(np.int32))
    return np.stack(np.meshgrid(*[one] * num_texts), axis=-1).reshape(-1, num_texts)
