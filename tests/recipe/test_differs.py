"""What recipes say under `differs` is so: lines about settings are compared with the settings."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from isoglot.batching.schedules import MaskingRate
from isoglot.errors import RecipeError
from isoglot.pretraining.config import objectives_of
from isoglot.recipe import load_recipe, recipe_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def used(recipe: Any) -> dict[str, Any]:
    """The objectives that the recipe's stages train."""
    return objectives_of(recipe)


def streams(recipe: Any) -> list[Any]:
    return [stream for stage in recipe.stages for stream in stage.streams.values()]


def numbers(line: str) -> list[float]:
    """The numbers of a line, before what it says in parentheses of the paper."""
    return [
        float(number.replace(",", ""))
        for number in re.findall(r"\d[\d,]*\.?\d*", line.split("(", maxsplit=1)[0])
    ]


def maskings(recipe: Any) -> list[Any]:
    """How its objectives mask; entity prediction does only as the released code."""
    found = [
        getattr(one, "masking", None)
        for one in used(recipe).values()
        if getattr(one, "variant", "released") == "released"
    ]
    return [masking for masking in found if masking is not None]


def rates(recipe: Any) -> set[float]:
    """The shares of tokens that its objectives predict."""
    found = {masking.rate for masking in maskings(recipe)}
    return found | {one.rate for name, one in used(recipe).items() if name == "camlm"}


def masks_as_said(recipe: Any, line: str) -> bool:
    share = 0.5 if "half of" in line else numbers(line)[0] / 100
    units = {masking.unit for masking in maskings(recipe)}
    wanted = {"pmi"} if line.startswith("at most") else {"span"} if "spans" in line else {"token"}
    predicts = any(one.weight for name, one in used(recipe).items() if name in PREDICTING)
    said = "predicted" in line or "moco" in used(recipe)
    return rates(recipe) == {share} and units == wanted and predicts == said


PREDICTING = ("mlm", "tlm", "camlm", "btmlm")


def clips_as_said(recipe: Any, line: str) -> bool:
    (norm,) = re.findall(r"norm (\d+)", line)
    stages = range(len(recipe.stages))
    return all(recipe.optimizer_in(stage).max_grad_norm == float(norm) for stage in stages)


def batch_as_said(recipe: Any, line: str) -> bool:
    rows, length = recipe.batch.rows, recipe.batch.row_length
    if "rows of" in line:
        return numbers(line)[:2] == [rows, length]
    return next(number for number in numbers(line) if number > 1000) == rows * length


def steps_as_said(recipe: Any, line: str) -> bool:
    steps = [stage.steps for stage in recipe.stages]
    if "two thirds" in line:
        share = steps[0] / sum(steps)
        return sum(steps) == numbers(line)[0] and share == pytest.approx(2 / 3, abs=0.01)
    return not numbers(line) or sum(steps) == numbers(line)[0]


def schedule_as_said(recipe: Any, line: str) -> bool:
    wanted = "linear" if "linearly" in line else "inverse_sqrt"
    if "at the peak" in line:
        optimizer = recipe.optimizer
        held = optimizer.warmup_start_ratio == 1 and optimizer.warmup_steps == numbers(line)[0]
        return held and optimizer.schedule == wanted
    return recipe.optimizer.schedule == wanted and recipe.optimizer.warmup_start_ratio == 0


def regresses_as_said(recipe: Any, line: str) -> bool:
    objective = used(recipe)["cooccurrence"]
    divides = "neighbors" if "they have" in line else "window" if "1/2n" in line else "none"
    (alpha,) = re.findall(r"0\.\d+", line)
    right = objective.normalize_by == divides and objective.detach == "none"
    return right and objective.alpha == float(alpha)


def neighbors_as_said(recipe: Any, line: str) -> bool:
    objective = used(recipe)["cooccurrence"]
    wanted = "all" if "masked or not" in line else "shown"
    return objective.neighbors == wanted and objective.neighbor_vectors == "hidden_states"


def shares_as_said(recipe: Any, line: str) -> bool:
    for stage in recipe.stages:
        by_kind: dict[str, float] = {}
        for stream in stage.streams.values():
            by_kind[stream.kind] = by_kind.get(stream.kind, 0.0) + stream.share
        if "half" in line and by_kind["text"] != by_kind["parallel"]:
            return False
        single = {stream.share for stream in stage.streams.values()}
        if "half" not in line and len(single) > 1:
            return False
        if "third" in line and len(stage.streams) != 3:
            return False
    return recipe.loss.weighting == "mean" if "mean loss" in line else True


def pseudo_as_said(recipe: Any, line: str) -> bool:
    objective = used(recipe)["btmlm"]
    read = [stream for stream in streams(recipe) if "btmlm" in stream.objectives]
    right = objective.decoding == "argmax" and all(one.unit == "sentence" for one in read)
    return right and objective.pseudo_rate == numbers(line)[0] / 100


def slots_as_said(recipe: Any, line: str) -> bool:
    has_slots = {"camlm", "btmlm"} & set(used(recipe))
    said = ("pseudo-tokens" in line) == ("btmlm" in used(recipe))
    return recipe.model.language_embeddings == "slots" and bool(has_slots) and said


def contrasts(recipe: Any) -> list[Any]:
    return [one for name, one in used(recipe).items() if name in ("moco", "entity", "entailment")]


def queue_as_said(recipe: Any, line: str) -> bool:
    queues = [one.queue.size for one in contrasts(recipe) if getattr(one, "loss", "") != "classify"]
    size = numbers(line)
    return bool(queues) and all(n > 0 for n in queues) and (not size or set(queues) == set(size))


def descriptions_as_said(recipe: Any, line: str) -> bool:
    read = [one for one in streams(recipe) if one.kind in ("mentions", "triples")]
    named = {len(one.description_languages) for one in read}
    wanted = {100} if "99" in line else {0}
    return bool(read) and all(one.description == "other" for one in read) and named == wanted


def entity_negatives(recipe: Any, _: str) -> bool:
    found = used(recipe)
    entails = "entailment" in found and found["entailment"].loss == "contrast"
    return entails or ("entity" in found and found["entity"].variant == "paper")


def known_objects(recipe: Any, _: str) -> Any:
    objective = used(recipe)["entailment"]
    return objective.loss == "contrast" and not objective.allow_false_negatives


def xlm_k_optimizer(recipe: Any, line: str) -> bool:
    optimizer = recipe.optimizer
    xlm_r = (optimizer.betas, optimizer.weight_decay) == ((0.9, 0.98), 0.01)
    return clips_as_said(recipe, line) and optimizer.schedule == "linear" and xlm_r


def keys_as_said(recipe: Any, _: str) -> Any:
    moco = used(recipe)["moco"]
    return moco.key_encoder == "momentum" and moco.key_dropout and not moco.symmetric


def vectors_as_said(recipe: Any, line: str) -> bool:
    moco = used(recipe)["moco"]
    (momentum,) = re.findall(r"momentum (0\.\d+)", line)
    size = re.findall(r"queue of ([\d,]+)", line)
    right = (moco.pooling, moco.projection.normalize) == ("mean", "after")
    queue = not size or moco.queue.size == int(size[0].replace(",", ""))
    return right and queue and moco.momentum.value == float(momentum)


def language_as_said(recipe: Any, line: str) -> bool:
    if recipe.model.decoder is None:
        return False
    embedded = recipe.model.language_embeddings == "all"
    mlm = used(recipe).get("mlm")
    told = mlm is None or mlm.uses_language_tokens
    return told and embedded == ("beside the code's embedding" in line)


def stage_2(recipe: Any, _: str) -> bool:
    first, last = (set(recipe.objectives_in(n)) for n in (len(recipe.stages) - 2, -1))
    return first == {"mlm", "tlm", "camlm"} and last == {"mlm", "tlm", "btmlm"}


CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "alpha": lambda r, line: (
        streams(r)[0].alpha_unit == "tokens"
        if "tokens" in line
        else numbers(line) == [streams(r)[0].alpha, streams(r)[0].end_alpha]
        if "falls" in line
        else streams(r)[0].alpha == 0.7
    ),
    "batch": batch_as_said,
    "betas": lambda r, line: list(r.optimizer.betas) == numbers(line),
    "camlm_layout": lambda r, _: used(r)["camlm"].slots == "extra",
    "candidates": lambda r, _: used(r)["moco"].in_batch_negatives,
    "clip": clips_as_said,
    "contrast": lambda r, _: (
        (used(r)["moco"].key_encoder, used(r)["moco"].projection.layers) == ("shared", 0)
    ),
    "decoder": lambda r, _: used(r)["cooccurrence"].states == "decoder",
    "descriptions": descriptions_as_said,
    "dictionaries": lambda r, _: (
        r.transplant.dictionaries
        and (r.transplant.translations, r.transplant.order, r.transplant.strict)
        == ("mean", "dictionary", True)
    ),
    "distillation": lambda r, _: (
        (used(r)["distill"].match, used(r)["distill"].weight, used(r)["mlm"].weight)
        == ("word_states", 1, 1)
    ),
    "entity_negatives": entity_negatives,
    "heads": lambda r, _: (
        all((one.projection_size, one.queue.start) == (None, "random") for one in contrasts(r))
        and contrasts(r)
    ),
    "initial": lambda r, _: r.objectives_in(0) == ["mlm"] and r.model.init_from is None,
    "keys": keys_as_said,
    "known_objects": known_objects,
    "language": language_as_said,
    "language_embeddings": slots_as_said,
    "length": lambda r, line: (
        "tlm" in used(r)
        and {one.max_tokens for one in streams(r)}
        == {None if "fit a row" in line else numbers(line)[0]}
    ),
    "lm_head": lambda r, _: (
        used(r)["cooccurrence"].neighbor_vectors == "output_embeddings"
        and used(r)["cooccurrence"].lm_head_transform
    ),
    "losses": lambda r, _: used(r)["entity"].variant == "released",
    "masking": masks_as_said,
    "masking_rate": lambda r, line: (
        [stage.masking_rate for stage in r.stages]
        == [MaskingRate(start=numbers(line)[0] / 100, end=numbers(line)[1] / 100)]
    ),
    "matching": lambda r, _: (
        r.transplant and r.transplant.initialize in ("both", "embeddings") and r.transplant.strict
    ),
    "negatives": lambda r, _: not used(r)["moco"].allow_false_negatives,
    "neighbors": neighbors_as_said,
    "optimizer": xlm_k_optimizer,
    "phrases": lambda r, _: (
        used(r)["mlm"].masking.unit == "pmi" and used(r)["mlm"].masking.phrases is None
    ),
    "pooling": lambda r, _: contrasts(r) and {one.pooling for one in contrasts(r)} == {"mean"},
    "pseudo_tokens": pseudo_as_said,
    "queue": queue_as_said,
    "regression": regresses_as_said,
    "relations": lambda r, _: used(r)["entailment"].loss == "contrast",
    "schedule": schedule_as_said,
    "shares": shares_as_said,
    "slot_positions": lambda r, _: used(r)["camlm"].positions == "continuous",
    "smoothing": lambda r, _: "mass" in r.objectives_in(1) and not used(r)["mass"].label_smoothing,
    "stage_2": stage_2,
    "stages": lambda r, _: len(r.stages) == 2 and not any(one.keep_optimizer for one in r.stages),
    "steps": steps_as_said,
    "target_languages": lambda r, _: "btmlm" in used(r) and "camlm" in used(r),
    "tlm_layout": lambda r, _: (
        (used(r)["tlm"].separator, used(r)["tlm"].positions) == ("double", "continuous")
    ),
    "vectors": vectors_as_said,
    "weights": lambda r, _: r.model.hidden_size or r.model.size == "tiny" or r.transplant,
    "weighting": lambda r, _: r.loss.weighting == "targets",
}
"""Topic of a line -> is it true of a recipe?"""

UNCHECKED = {
    "alternation": "how steps are mixed is a fact of the library",
    "attention_dropout": "it is 0 in all recipes",
    "choices": "it speaks of the paper",
    "classes": "it speaks of the export",
    "configuration": "it speaks of the released code",
    "constants": "it speaks of the counter",
    "fragment_end": "a fact of the objective",
    "fragment_start": "a fact of the objective",
    "languages": "it speaks of the paper's list",
    "mixture": "a choice",
    "monolingual": "the stream of the recipe",
    "next_sentence": "there is no such objective",
    "pairs": "it speaks of the paper's list",
    "release": "it speaks of the paper",
    "same_sentences": "the stream of the recipe",
    "sentence_order": "there is no such objective",
    "short_sentences": "it speaks of preparing",
    "tokenizer": "it speaks of preparing",
    "training": "several settings in words",
    "vocabulary": "it speaks of preparing",
}


load = cache(load_recipe)


@pytest.mark.parametrize("name", recipe_names())
def test_every_line_that_states_a_setting_is_so(name: str) -> None:
    recipe = load(name)
    for topic, line in recipe.differs.items():
        assert topic in CHECKS or topic in UNCHECKED, f"{name}: {topic} is no known topic"
        try:
            true = CHECKS.get(topic, lambda *_: True)(recipe, line)
        except KeyError as error:
            pytest.fail(f"{name} does not train {error}, of which it says {topic}: {line}")
        assert true, f"{name}: {topic}: {line}"


@pytest.mark.parametrize("name", recipe_names())
def test_what_must_be_said_is_said(name: str) -> None:
    """A setting of our own choice is not left out by a recipe that inherits it."""
    recipe = load(name)
    said, objectives = recipe.differs, used(recipe)
    assert ("regression" in said) == ("cooccurrence" in objectives)
    assert ("camlm_layout" in said) == ("slot_positions" in said) == ("camlm" in objectives)
    assert ("pseudo_tokens" in said) == ("target_languages" in said) == ("btmlm" in objectives)
    assert ("phrases" in said) == any(masking.unit == "pmi" for masking in maskings(recipe))
    assert ("distillation" in said) == ("distill" in objectives)
    assert ("masking_rate" in said) == any(stage.masking_rate for stage in recipe.stages)
    assert ("dictionaries" in said) == bool(recipe.transplant and recipe.transplant.dictionaries)
    if recipe.corpus is None and not name.startswith("demo"):
        assert "attention_dropout" in said
        assert ("masking" in said) == bool({*PREDICTING} & {*objectives} or "xlco" in name)


def test_lines_add_up_and_can_be_withdrawn(tmp_path: Path) -> None:
    base, change = tmp_path / "base.yaml", tmp_path / "change.yaml"
    base.write_text("extends: xlm\nname: base\ndiffers: {mine: a line, choices: ours}\n")
    change.write_text("extends: base.yaml\nname: change\ndiffers: {masking: null, more: b}\n")
    inherited, found = load_recipe("xlm").differs, load_recipe(str(change)).differs
    assert found == {
        **{topic: line for topic, line in inherited.items() if topic != "masking"},
        "choices": "ours",
        "mine": "a line",
        "more": "b",
    }


def test_a_line_that_was_never_inherited_cannot_be_withdrawn(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: xlm\nname: mine\ndiffers:\n  maskng: null\n")
    with pytest.raises(RecipeError, match=r"mine.yaml:4: differs: there is no line 'maskng'"):
        load_recipe(str(file))


def test_a_line_is_text_under_a_topic(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: xlm\nname: mine\ndiffers: [a line]\n")
    with pytest.raises(RecipeError, match="expected names with values"):
        load_recipe(str(file))
