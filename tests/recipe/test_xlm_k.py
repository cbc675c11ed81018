"""XLM-K's recipes say what the paper says, and each ablation changes what it names."""

from __future__ import annotations

import pytest

from isoglot.batching.streams import MentionStream, TripleStream
from isoglot.objectives.entailment import ObjectEntailment
from isoglot.objectives.entity import EntityPrediction
from isoglot.recipe import load_recipe

ABLATIONS = {
    "mep": {"text": ("mlm",), "mentions": ("entity",)},
    "oe": {"text": ("mlm",), "triples": ("entailment",)},
    "same-language": {"text": ("mlm",), "mentions": ("entity",)},
    "classify": {"text": ("mlm",), "triples": ("entailment",)},
    "no-tasks": {"text": ("mlm",), "descriptions": ("mlm",)},
}


def test_the_recipe_is_the_papers():
    recipe = load_recipe("xlm-k")
    assert recipe.model.init_from == "xlm-roberta-base"
    assert (recipe.batch.rows, recipe.batch.row_length) == (8192, 512)
    optimizer = recipe.optimizer
    assert (optimizer.learning_rate, optimizer.warmup_steps, optimizer.name) == (
        3e-5,
        10_000,
        "adamw",
    )
    assert recipe.loss.weighting == "mean"
    entity, entailment = (recipe.objectives[name] for name in ("entity", "entailment"))
    assert isinstance(entity, EntityPrediction)
    assert isinstance(entailment, ObjectEntailment)
    for task in (entity, entailment):
        assert (task.weight, task.temperature, task.normalize, task.pooling) == (1, 1, False, "cls")
        assert (task.queue.size, task.queue.start) == (32_000, "random")
        assert (task.projection_size, task.layer) == (None, None)
    assert entity.variant == "paper"
    (stage,) = recipe.stages
    for name, kind in (("mentions", MentionStream), ("triples", TripleStream)):
        stream = stage.streams[name]
        assert isinstance(stream, kind)
        assert (stream.alpha, stream.max_tokens, stream.description) == (0.3, 254, "other")
    assert stage.streams["text"].alpha == 0.3


@pytest.mark.parametrize("base", ["xlm-k", "xlm-k-tiny"])
@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_changes_what_it_names(base, name):
    whole, recipe = load_recipe(base), load_recipe(f"ablations/{base}-{name}")
    assert [stage.steps for stage in recipe.stages] == [stage.steps for stage in whole.stages]
    assert (recipe.model, recipe.batch, recipe.optimizer) == (
        whole.model,
        whole.batch,
        whole.optimizer,
    )
    streams = recipe.stages[-1].streams
    assert {key: stream.objectives for key, stream in streams.items()} == ABLATIONS[name]
    changed = {key for key, value in recipe.objectives.items() if value != whole.objectives[key]}
    assert changed == ({"entailment"} if name == "classify" else set())
    mentions = streams.get("mentions")
    if isinstance(mentions, MentionStream):
        assert mentions.description == ("same" if name == "same-language" else "other")


def test_a_hundred_languages_are_named_once_each():
    streams = load_recipe("xlm-k-100").stages[0].streams
    assert streams["mentions"].languages == streams["triples"].languages
    assert len(set(streams["mentions"].languages)) == 100
    for stream in (streams["mentions"], streams["triples"]):
        assert isinstance(stream, MentionStream | TripleStream)
        assert stream.description_languages == stream.languages


@pytest.mark.parametrize("name", ["xlm-k-bilingual", "xlm-k-bilingual-tiny"])
def test_bilingual_objectives_join_in(name):
    recipe = load_recipe(name)
    assert set(recipe.objectives_in(len(recipe.stages) - 1)) == {
        "mlm",
        "tlm",
        "camlm",
        "entity",
        "entailment",
    }


def test_the_released_code_has_a_recipe():
    entity = load_recipe("ablations/xlm-k-released").objectives["entity"]
    assert isinstance(entity, EntityPrediction)
    assert entity.variant == "released"
