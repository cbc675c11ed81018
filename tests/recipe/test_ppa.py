"""PPA's recipe says what the paper says (sections 2 and 3, Table 5); so do its variants.

And InfoXLM's contrast says what its released code does. All numbers are typed from the papers.
"""

from dataclasses import replace
from typing import Any

import pytest

from isoglot.objectives.contrast.pooling import ProjectionConfig
from isoglot.objectives.mlm import MLM
from isoglot.objectives.moco import MoCo
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.config import objectives_of
from isoglot.recipe import load_recipe


def stream_of(recipe):
    (stage,) = recipe.stages
    (stream,) = stage.streams.values()
    return stage, stream


def test_the_papers_numbers():
    recipe = load_recipe("ppa")
    moco, tlm = (objectives_of(recipe)[name] for name in ("moco", "tlm"))
    assert isinstance(moco, MoCo)
    assert isinstance(tlm, TLM)
    assert (moco.pooling, moco.layer, moco.temperature) == ("cls", None, 0.05)
    assert (moco.momentum.value, moco.queue.size, moco.queue.start) == (0.999, 32_000, "random")
    assert (moco.key_encoder, moco.in_batch_negatives, moco.masking) == ("momentum", False, None)
    assert (moco.momentum.schedule, moco.symmetric) == ("constant", False)
    assert recipe.model.init_from == "bert-base-multilingual-cased"
    head = moco.projection
    assert (head.layers, head.size, head.bias, head.normalize) == (2, 300, False, "before")
    assert head == ProjectionConfig(), "the default is the paper's"
    assert (tlm.positions, tlm.separator, tlm.language_ids) == ("continuous", "single", False)
    assert (tlm.masking.rate, tlm.masking.mask_replace_prob, tlm.masking.random_replace_prob) == (
        0.15,
        0.8,
        0.1,
    )
    assert (moco.weight, tlm.weight, recipe.loss.weighting) == (1.0, 1.0, "mean")
    settings = recipe.optimizer
    assert (settings.name, settings.learning_rate, settings.weight_decay) == ("adamw", 3e-5, 0.01)
    assert (settings.schedule, settings.warmup_ratio) == ("linear", 0.1)
    stage, stream = stream_of(recipe)
    assert (stage.epochs, stream.sampling, stream.order) == (10, "epochs", "shuffled")
    assert (stream.min_tokens, stream.max_tokens, stream.max_pairs) == (10, 128, 250_000)
    assert stream.objectives == ("moco", "tlm")


def test_the_numbers_of_infoxlm():
    recipe = load_recipe("xlco")
    objectives = objectives_of(recipe)
    moco, tlm, mlm = (objectives[name] for name in ("moco", "tlm", "mlm"))
    assert isinstance(moco, MoCo)
    assert isinstance(tlm, TLM)
    assert isinstance(mlm, MLM)
    assert (moco.pooling, moco.layer, moco.temperature) == ("cls", 8, 0.25)
    head = moco.projection
    assert (head.layers, head.size, head.bias, head.normalize) == (1, None, False, "none")
    assert (moco.momentum.value, moco.momentum.schedule) == (0.9999, "constant")
    assert (moco.queue.size, moco.queue.start) == (131_072, "filled")
    assert (moco.key_encoder, moco.in_batch_negatives, moco.symmetric) == ("momentum", False, False)
    for masking in (moco.masking, tlm.masking, mlm.masking):
        assert masking is not None
        assert (masking.rate, masking.mask_replace_prob, masking.random_replace_prob) == (
            0.15,
            0.8,
            0.1,
        )
    assert (tlm.positions, tlm.separator, tlm.language_ids) == ("continuous", "single", False)
    assert recipe.loss.weighting == "targets"
    assert (moco.weight, tlm.weight, mlm.weight) == (1.0, 1.0, 1.0)
    assert (recipe.model.init_from, recipe.model.dropout) == ("xlm-roberta-base", 0.0)
    settings = recipe.optimizer
    assert (settings.name, settings.learning_rate, settings.weight_decay) == ("adamw", 2e-4, 0.01)
    assert (settings.betas, settings.eps, settings.max_grad_norm) == ((0.9, 0.98), 1e-6, 1.0)
    assert (settings.schedule, settings.warmup_steps) == ("linear", 10_000)
    (stage,) = recipe.stages
    assert stage.steps == 200_000
    found = {stream.objectives: getattr(stream, "mixup", None) for stream in stage.streams.values()}
    assert found == {("mlm",): None, ("tlm",): False, ("moco",): True}


def test_in_batch_contrast_trains_both_sides_on_the_micro_batch_alone():
    recipe, base = load_recipe("ppa-in-batch"), load_recipe("ppa")
    moco = objectives_of(recipe)["moco"]
    assert isinstance(moco, MoCo)
    assert (moco.key_encoder, moco.in_batch_negatives, moco.symmetric) == ("shared", True, True)
    assert (moco.queue.size, moco.projection.layers, moco.temperature) == (0, 0, 0.05)
    assert moco.projection.normalize == "before"
    assert (recipe.optimizer, recipe.model, recipe.stages) == (
        base.optimizer,
        base.model,
        base.stages,
    )


def test_ppa_mean_is_ppa_but_for_how_vectors_are_made():
    recipe, base = load_recipe("ppa-mean"), load_recipe("ppa")
    moco, published = objectives_of(recipe)["moco"], objectives_of(base)["moco"]
    assert isinstance(moco, MoCo)
    assert isinstance(published, MoCo)
    assert (moco.pooling, moco.projection.normalize, moco.momentum.value) == ("mean", "after", 0.95)
    assert (moco.queue, moco.temperature) == (published.queue, published.temperature)
    assert (recipe.optimizer, recipe.model) == (base.optimizer, base.model)
    # a user's own pairs are read whatever their lengths
    ((stage,), (as_in_paper,)) = recipe.stages, base.stages
    limits: dict[str, Any] = {"min_tokens": 1, "max_tokens": None, "max_pairs": None}
    expected = replace(as_in_paper.streams["parallel"], **limits)
    assert stage == replace(as_in_paper, streams={"parallel": expected})


@pytest.mark.parametrize(
    ("name", "said", "unsaid"),
    [
        ("ppa", ("keys", "not negatives", "predicted", "clipped at norm 1"), ()),
        ("ablations/ppa-no-moco", ("predicted", "clipped at norm 1"), ("keys", "negatives")),
        ("ablations/ppa-no-tlm", ("keys", "not negatives", "clipped at norm 1"), ("predicted",)),
        ("ablations/ppa-mlm", ("keys", "not negatives", "of a sentence", "clipped at norm 1"), ()),
        ("ppa-in-batch", ("no momentum encoder", "not negatives", "clipped at norm 1"), ("MoCo",)),
        ("ppa-mean", ("the mean of the states", "not negatives", "clipped at norm 1"), ()),
        ("xlco", ("1,536 rows",), ("the queue fills",)),
    ],
)
def test_what_differs_is_said_of_what_the_recipe_has(name, said, unsaid):
    recipe = load_recipe(name)
    lines = " ".join(recipe.differs.values())
    assert all(words in lines for words in said)
    assert not any(words in lines for words in unsaid)
    if "clipped at norm 1" in said:
        assert recipe.optimizer.max_grad_norm == 1.0


@pytest.mark.parametrize(
    ("name", "objectives", "first", "epochs"),
    [
        ("ppa-600k", ("moco", "tlm"), 600_000, 10),
        ("ppa-2m", ("moco", "tlm"), 2_000_000, 5),
        ("ppa-no-moco", ("tlm",), 250_000, 10),
        ("ppa-no-tlm", ("moco",), 250_000, 10),
        ("ppa-mlm", ("moco", "mlm"), 250_000, 10),
    ],
)
def test_a_variant_differs_in_what_it_says_and_in_nothing_else(name, objectives, first, epochs):
    recipe, base = load_recipe(f"ablations/{name}"), load_recipe("ppa")
    stage, stream = stream_of(recipe)
    assert (stream.objectives, stream.max_pairs, stage.epochs) == (objectives, first, epochs)
    _, plain = stream_of(base)
    for setting in ("order", "sampling", "min_tokens", "max_tokens"):
        assert getattr(stream, setting) == getattr(plain, setting)
    assert (recipe.optimizer, recipe.model) == (base.optimizer, base.model)
    for objective in set(objectives) & {"moco", "tlm"}:
        assert objectives_of(recipe)[objective] == objectives_of(base)[objective]
