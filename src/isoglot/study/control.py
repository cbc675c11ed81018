"""The control of a recipe: the same model, text and tokens under masked language modelling alone.

What a recipe gains over its control is what its objectives gain; what it gains over some other
checkpoint may be its data. (Explicit alignment has been found to lose its gains under such a test:
Wu and Dredze, 2020.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isoglot.errors import RecipeError
from isoglot.objectives import find_objective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.pretrain.config import StageConfig
    from isoglot.recipe.schema import Recipe

_MLM = "mlm"


def mlm_control(recipe: Recipe) -> Recipe:
    """The recipe with every objective replaced by MLM on the same streams.

    Raises:
        RecipeError: MLM cannot read one of the streams.
    """
    stages = tuple(_controlled(stage, recipe.name) for stage in recipe.stages)
    kept = {name: found for name, found in recipe.objectives.items() if name == _MLM}
    return replace(recipe, name=f"{recipe.name}-control", stages=stages, objectives=kept)


def with_controls(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The recipes after their controls; a control that several share, or that is given, is one."""
    known = {recipe.fingerprint() for recipe in recipes}
    controls: dict[str, Recipe] = {}
    for recipe in recipes:
        control = mlm_control(recipe)
        if control.fingerprint() not in known:
            controls.setdefault(control.fingerprint(), control)
    return [*controls.values(), *recipes]


def _controlled(stage: StageConfig, recipe: str) -> StageConfig:
    readable = find_objective(_MLM).reads
    for name, stream in stage.streams.items():
        if stream.kind not in readable:
            raise RecipeError(
                f"{recipe} has the stream {name!r} ({stream.kind}), which MLM cannot read, so its "
                "control is not the same text under MLM. Write the control as a recipe of its own."
            )
    streams = {name: replace(s, objectives=(_MLM,)) for name, s in stage.streams.items()}
    return replace(stage, streams=streams)
