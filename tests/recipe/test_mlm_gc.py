"""The recipes of MLM-GC say what its sections and tables say, typed in here a second time."""

from dataclasses import replace
from typing import Any

import pytest

from isoglot.pretraining.optimizers.optimizer import learning_rate
from isoglot.recipe import load_recipe


def of(recipe: Any, name: str) -> Any:
    return recipe.objectives[name]


@pytest.mark.parametrize("name", ["mlm-gc", "mlm-gc+tlm", "xlm+pmi", "ablations/mlm-gc-none"])
def test_section_4_1(name):
    recipe = load_recipe(name)
    assert (recipe.model.size, recipe.model.language_embeddings, recipe.model.dropout) == (
        "xlm",
        "all",
        0.1,
    )
    assert recipe.batch.rows * recipe.batch.row_length == 8192
    optimizer = recipe.optimizer
    assert (optimizer.name, optimizer.learning_rate, optimizer.eps) == ("adamw", 1e-4, 1e-8)
    assert optimizer.betas == (0.9, 0.999)
    assert (optimizer.weight_decay, optimizer.warmup_steps) == (0.0, 10_000)
    assert sum(stage.steps or 0 for stage in recipe.stages) == 400_000
    assert of(recipe, "mlm").masking.rate == 0.15


def test_equation_3():
    gc = of(load_recipe("mlm-gc"), "cooccurrence")
    assert (gc.weight, gc.pairs.window, gc.pairs.weights) == (1.0, 2, "paper")
    assert gc.pairs.language_constants
    assert (gc.x_max, gc.alpha, gc.scale, gc.neighbor_vectors) == (
        100.0,
        0.75,
        True,
        "hidden_states",
    )


def test_tables_1_and_2():
    for n in (1, 3, 4):
        assert of(load_recipe(f"ablations/mlm-gc-n{n}"), "cooccurrence").pairs.window == n
    for weight in (0.1, 0.5, 2):
        gc = of(load_recipe(f"ablations/mlm-gc-lambda{weight}"), "cooccurrence")
        assert gc.weight == weight
    steps, without = 400_000, load_recipe("ablations/mlm-gc-no-warmup").optimizer
    own = load_recipe("mlm-gc").optimizer
    assert {learning_rate(without, step, steps) for step in (0, 1, 5000, 9999)} == {1e-4}
    for step in (10_000, 40_000, 399_999):
        assert learning_rate(without, step, steps) == learning_rate(own, step, steps) <= 1e-4
    assert not of(load_recipe("ablations/mlm-gc-no-scale"), "cooccurrence").scale
    assert of(load_recipe("ablations/mlm-gc-no-factor"), "cooccurrence").normalize_by == "none"


def test_the_alternatives():
    for name in ("mlm-gc-output", "mlm-gc-output+tlm"):
        assert (
            of(load_recipe(f"ablations/{name}"), "cooccurrence").neighbor_vectors
            == "output_embeddings"
        )
    assert of(load_recipe("ablations/mlm-gc-alone"), "mlm").weight == 0
    released = of(load_recipe("ablations/mlm-gc-released"), "cooccurrence")
    assert (released.pairs.weights, released.neighbors) == ("released", "shown")
    assert (released.log_plus_one, released.normalize_by) == (True, "window")
    masking = of(load_recipe("xlm+pmi"), "mlm").masking
    assert (masking.unit, masking.pmi.max_length, masking.phrases) == ("pmi", 5, None)


def test_what_rides_on_what():
    expected = {
        "mlm-gc": {"mlm", "cooccurrence"},
        "mlm-gc+tlm": {"mlm", "tlm", "cooccurrence"},
        "xlm+pmi": {"mlm"},
        "ablations/mlm-gc-none": {"mlm"},
        "ablations/mlm-gc-none+tlm": {"mlm", "tlm"},
        "ablations/mlm-gc-tiny+tlm": {"mlm", "tlm", "cooccurrence"},
        "ablations/mlm-gc-tiny-none+tlm": {"mlm", "tlm"},
    }
    for name, objectives in expected.items():
        assert set(load_recipe(name).objectives_in(0)) == objectives


def test_the_baseline_of_table_5_differs_in_the_regression_alone():
    whole, base = load_recipe("mlm-gc+tlm"), load_recipe("ablations/mlm-gc-none+tlm")
    assert (base.model, base.batch, base.optimizer) == (whole.model, whole.batch, whole.optimizer)
    for stream, other in zip(
        base.stages[0].streams.values(), whole.stages[0].streams.values(), strict=True
    ):
        assert replace(other, objectives=stream.objectives) == stream


def test_words_are_a_table_of_unsupervised_translation():
    """B.2: all the configurations of UNMT, with a word-level vocabulary, which is the corpus's."""
    for name in ("unmt-xlm", "unmt-xlm+gc"):
        plain, words = load_recipe(name), load_recipe(f"ablations/{name}-words")
        assert (plain.model, plain.stages, plain.objectives) == (
            words.model,
            words.stages,
            words.objectives,
        )


def test_appendix_b():
    recipe = load_recipe("mlm-gc-albert")
    assert recipe.model.size == "albert"
    assert (recipe.optimizer.name, recipe.optimizer.learning_rate) == ("lamb", 0.00176)
    assert recipe.stages[0].steps == 140_000
    assert recipe.stages[0].streams["text"].languages == ("en",)
    assert of(recipe, "mlm").masking.unit == "span"
