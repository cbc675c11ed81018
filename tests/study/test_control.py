from __future__ import annotations

from isoglot.recipe import load_recipe
from isoglot.study import mlm_control, with_controls


def test_the_control_is_the_same_text_and_tokens_under_mlm():
    recipe = load_recipe("demo/mlm-tlm")
    control = mlm_control(recipe)
    for before, after in zip(recipe.stages, control.stages, strict=True):
        assert before.steps == after.steps
        assert before.streams.keys() == after.streams.keys()
        assert {stream.objectives for stream in after.streams.values()} == {("mlm",)}
        assert {s.share for s in before.streams.values()} == {
            s.share for s in after.streams.values()
        }
    assert (control.batch, control.optimizer, control.model) == (
        recipe.batch,
        recipe.optimizer,
        recipe.model,
    )
    assert set(control.objectives) == {"mlm"}


def test_recipes_on_the_same_data_share_a_control_and_it_comes_first():
    one = load_recipe("demo/mlm-tlm")
    other = load_recipe("demo/mlm-tlm", ["name=other", "objectives.tlm.masking.rate=0.3"])
    assert [r.name for r in with_controls([one, other])] == [
        "demo/mlm-tlm-control",
        "demo/mlm-tlm",
        "other",
    ]


def test_a_recipe_that_is_its_own_control_gets_none():
    recipe = load_recipe("demo/checkpoint", ["objectives={mlm: {masking: {rate: 0.5}}}"])
    assert with_controls([recipe]) == [recipe]
