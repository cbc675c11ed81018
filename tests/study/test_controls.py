"""Controls: the same data as their recipes, under MLM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isoglot.batching.loader import open_streams
from isoglot.pretraining.config import objectives_of, objectives_to_fit
from isoglot.recipe import load_recipe
from isoglot.study.controls import mlm_control, with_controls


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
    # TLM is not trained; it decides which pairs fit a row
    assert set(control.objectives) == {"mlm", "tlm"}
    assert [stream.must_fit for stream in control.stages[0].streams.values()] == [(), ("tlm",)]


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


def test_a_control_reads_exactly_the_pairs_of_its_recipe(corpus):
    """CAMLM's sequences are longer than MLM's, which alone would read more pairs."""
    recipe = load_recipe("ernie-m-tiny", ["batch.row_length=24"])
    control = mlm_control(recipe)
    free = replace_must_fit(control)
    read = []
    for one in (recipe, control, free):
        objectives = {**objectives_to_fit(one), **objectives_of(one)}
        streams = {"parallel": one.stages[1].streams["parallel"]}
        (opened,) = open_streams(corpus, streams, objectives, row_length=24)
        read.append({s.name: rows_of(s) for s in opened.slices})
    assert read[0] == read[1]
    assert all(len(free_rows) > len(read[0][name]) for name, free_rows in read[2].items())


def rows_of(pairs) -> list[int]:
    """The rows of the table that a slice reads."""
    return pairs.kept.rows(np.arange(pairs.num_examples)).tolist()


def replace_must_fit(recipe):
    """A control as it would be by its own lengths."""
    stages = tuple(
        replace(s, streams={name: replace(one, must_fit=()) for name, one in s.streams.items()})
        for s in recipe.stages
    )
    return replace(recipe, stages=stages)


def test_recipes_that_read_other_pairs_have_controls_of_their_own():
    rows = [load_recipe("ernie-m-tiny", [f"name={name}"]) for name in ("one", "two")]
    stage = rows[1].stages[1]
    shorter = {**stage.streams, "parallel": replace(stage.streams["parallel"], objectives=("mlm",))}
    other = (rows[1].stages[0], replace(stage, streams=shorter), rows[1].stages[2])
    rows[1] = replace(rows[1], stages=other)
    assert [row.name for row in with_controls(rows)] == ["one-control", "two-control", "one", "two"]


def test_the_demos_control_is_that_of_its_recipe():
    """demo/mlm reads the pairs of demo/mlm-tlm, so no other control is added."""
    rows = [load_recipe("demo/mlm"), load_recipe("demo/mlm-tlm")]
    assert with_controls(rows) == rows
