"""MetaXLM's recipes say what the paper says (Table 7, Tables 3 to 5). Numbers are the paper's."""

import pytest

from isoglot.objectives.distill import Distill
from isoglot.objectives.mlm import MLM
from isoglot.pretraining.config import objectives_of
from isoglot.recipe import load_recipe

ABLATIONS = ("body", "embeddings", "none", "freezing", "xlm", "kd")


@pytest.mark.parametrize("name", ["metaxlm", "metaxlm-dict", *ABLATIONS])
def test_table_7(name):
    recipe = load_recipe(name if name.startswith("metaxlm") else f"ablations/metaxlm-{name}")
    (stage,) = recipe.stages
    (stream,) = stage.streams.values()
    settings = recipe.optimizer
    assert stage.steps == 200_000
    assert (recipe.batch.rows, recipe.batch.row_length) == (64, 512)
    assert (settings.name, settings.learning_rate, settings.warmup_steps) == ("adamw", 1e-4, 10_000)
    assert (settings.betas, settings.eps, settings.weight_decay) == ((0.9, 0.98), 1e-6, 0.01)
    assert (settings.schedule, settings.min_lr_ratio, settings.max_grad_norm) == (
        "linear",
        0.0,
        1.0,
    )
    assert (recipe.model.dropout, recipe.model.language_embeddings) == (0.1, "none")
    assert (stream.kind, stream.alpha) == ("text", 0.7)
    mlm = objectives_of(recipe)["mlm"]
    assert isinstance(mlm, MLM)
    assert (mlm.masking.rate, mlm.weight) == (0.15, 1.0)


def test_the_phases():
    meta, recipe = load_recipe("metaxlm-meta"), load_recipe("metaxlm")
    assert (meta.model.size, meta.model.init_from, meta.transplant) == ("base", None, None)
    assert recipe.model.init_from == "roberta-base"
    assert recipe.transplant is not None
    assert (recipe.transplant.initialize, recipe.transplant.fallback) == ("both", "random")
    with_words = load_recipe("metaxlm-dict").transplant
    assert with_words is not None
    assert with_words.dictionaries == ("dictionaries/*.txt",)


@pytest.mark.parametrize("tiny", ["", "tiny-"])
def test_an_ablation_differs_in_what_it_says_and_in_nothing_else(tiny):
    base = load_recipe(f"metaxlm-{tiny}".rstrip("-"))
    found = {name: load_recipe(f"ablations/metaxlm-{tiny}{name}") for name in ABLATIONS}
    for name in ("body", "embeddings", "none"):
        transplant = found[name].transplant
        assert transplant is not None
        assert transplant.initialize == name
        assert found[name].model == base.model
    assert (found["freezing"].model.freeze, base.model.freeze) == ("body", "none")
    assert found["freezing"].transplant == base.transplant
    scratch, taught = found["xlm"], found["kd"]
    for recipe in (scratch, taught):
        assert (recipe.model.init_from, recipe.transplant) == (None, None)
    assert scratch.stages == base.stages
    assert taught.model == scratch.model
    distill = objectives_of(taught)["distill"]
    assert isinstance(distill, Distill)
    assert (distill.match, distill.languages) == ("word_states", ("en",))
    for recipe in found.values():
        assert (recipe.optimizer, recipe.batch, recipe.loss) == (
            base.optimizer,
            base.batch,
            base.loss,
        )
