"""The commented YAML: every setting has its sentence, and lines stay readable."""

from __future__ import annotations

import dataclasses
import typing
from typing import Annotated, Any, Literal

import pytest

from isoglot.batching.streams import STREAMS
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.objectives import all_objectives
from isoglot.pretraining.config import Recipe
from isoglot.ranges import Range
from isoglot.recipe import load_recipe
from isoglot.recipe.explain import allowed_values, explained, sentences


def settings_below(kind: Any) -> set[Any]:
    """The dataclasses of settings that can be reached from one."""
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return {found for inner in typing.get_args(kind) for found in settings_below(inner)}
    below = [settings_below(hint) for hint in typing.get_type_hints(kind).values()]
    return {kind}.union(*below)


ALL = {
    found
    for kind in (Recipe, PrepareConfig, *all_objectives(), *STREAMS)
    for found in settings_below(kind)
}


@pytest.mark.parametrize("kind", sorted(ALL, key=repr))
def test_every_setting_has_a_sentence(kind):
    said = sentences(kind)
    for field in dataclasses.fields(kind):
        assert said.get(field.name, "").strip().endswith((".", ")")), (
            f"{kind.__name__}.{field.name} needs one sentence after it, ending with a full stop"
        )


def test_the_nearest_class_has_the_last_word():
    said = sentences(Recipe)
    assert said["name"] == "Name of the recipe, and of the run's folder by default."
    assert said["seed"].startswith("Random seed of the data order")


def test_it_reads_like_this():
    text = explained(load_recipe("tiny", ["stages.0.optimizer.max_grad_norm=null"]))
    lines = text.splitlines()
    assert lines[0].startswith("name: tiny                        # Name of the recipe, and of")
    moments = "# Decay rates of the two moments. [each from 0 to below 1]"
    assert f"  betas: [0.9, 0.98]              {moments}" in lines
    decides = "# Optimizer steps of this stage; null: `epochs` decides. [from 1"
    assert f"- steps: 400                      {decides}" in lines
    assert (
        "      objectives: [mlm]           # The objectives that read each draw of this stream."
        in lines
    )
    start = "    max_grad_norm: null           # Norm that the gradient is clipped to"
    assert any(line.startswith(start) for line in lines)
    assert "  weights: a model of 1M weights on generated text, to try things out" in lines
    assert max(len(line) for line in lines if "#" in line) <= 100


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Literal["a", "no", 2], "a | no | 2"),
        (Literal["a"] | None, "a | null"),
        (Annotated[int | None, Range(1, 5)], "from 1 to 5 | null"),
        (Annotated[float, Range(0, 1, below=True)], "from 0 to below 1"),
        (bool | None, "true | false | null"),
        (tuple[Annotated[float, Range(0, 1)], ...], "each from 0 to 1"),
        (tuple[str, ...], ""),
        (str | None, ""),
        (dict[str, int], ""),
    ],
)
def test_the_values_a_type_allows(kind, words):
    assert allowed_values(kind) == words


def test_every_choice_of_a_recipe_is_listed():
    """Whatever a setting's type names stands beside it, or beside a setting above it."""
    text = " ".join(line.split("#", 1)[-1].strip() for line in _lines("xlm-k"))
    for choice in ("paper | released", "contrast | classify", "other | same", "cls | mean"):
        assert choice in text


def _lines(name):
    return explained(load_recipe(name)).splitlines()


def test_text_that_yaml_must_quote(tmp_path):
    odd = "a: b # 'c'\nd"
    recipe = load_recipe(
        "tiny", ["summary='a: b # ''c'''", "name='1e-4'", "differs={'- x': 'y: # z', 'no': 'no'}"]
    )
    recipe = dataclasses.replace(recipe, paper=odd)
    file = tmp_path / "a.yaml"
    file.write_text(explained(recipe), encoding="utf-8")
    assert load_recipe(str(file)) == recipe


def test_names_with_hyphens_are_not_divided():
    lines = explained(load_recipe("tiny")).splitlines()
    assert not [line for line in lines if "#" in line and line.endswith("-")]
