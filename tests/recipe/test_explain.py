"""The commented YAML: every setting has its sentence, and lines stay readable."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

import pytest

from isoglot.batching.streams import STREAMS
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.objectives import all_objectives
from isoglot.pretraining.config import Recipe
from isoglot.recipe import load_recipe
from isoglot.recipe.explain import explained, sentences


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
    assert "  betas: [0.9, 0.98]              # Decay rates of the two moments." in lines
    assert (
        "- steps: 400                      # Optimizer steps of this stage; null: `epochs` decides."
        in lines
    )
    assert (
        "      objectives: [mlm]           # The objectives that read each draw of this stream."
        in lines
    )
    start = "    max_grad_norm: null           # Norm that the gradient is clipped to"
    assert any(line.startswith(start) for line in lines)
    assert "- a model of 1M weights on generated text, to try things out" in lines
    assert max(len(line) for line in lines if "#" in line) <= 100


def test_text_that_yaml_must_quote(tmp_path):
    odd = "a: b # 'c'\nd"
    recipe = load_recipe(
        "tiny", ["summary='a: b # ''c'''", "name='1e-4'", "differs=['- x: y', 'no']"]
    )
    recipe = dataclasses.replace(recipe, paper=odd)
    file = tmp_path / "a.yaml"
    file.write_text(explained(recipe), encoding="utf-8")
    assert load_recipe(str(file)) == recipe
