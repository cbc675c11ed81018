"""Answers to clozes against the plain model, one prompt at a time; answers side by side."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from isoglot.errors import IsoglotError, ModelError
from isoglot.evaluation.data import ScoringJob
from isoglot.evaluation.probing import (
    ClozePrediction,
    _choose_open,
    differing_predictions,
    predict_objects,
    score_probe,
    write_prediction,
)
from isoglot.evaluation.settings import FeatureConfig
from isoglot.tasks import find_task
from isoglot.tasks.examples import Fact
from tests.tiny_corpus import words

CANDIDATES = (*words("aa")[:6], f"{words('aa')[6]} {words('aa')[7]}", words("bb")[3])


def facts():
    some = words("aa")
    return [
        Fact(
            id=str(number),
            relation="P1",
            group="T-REx N-1",
            prompt=f"{some[number]} {' '.join(some[3 : 3 + number])} [Y] {some[number + 9]}",
            answers=(some[number],),
            candidates=CANDIDATES if number % 2 else (),
        )
        for number in range(6)
    ]


@pytest.fixture(scope="module")
def model(folder):
    return AutoModelForMaskedLM.from_pretrained(folder).eval()


@torch.no_grad()
def slow(model, tokenizer, fact, masks):
    """The open and the typed answer, by the definition."""
    opened, typed = [], []
    for number in range(1, masks + 1):
        prompt = fact.prompt.replace("[Y]", tokenizer.mask_token * number)
        encoded = tokenizer(prompt, return_tensors="pt")
        at = (encoded["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0]
        assert len(at) == number
        logits = model(**encoded).logits[0, at].double()
        logits[:, tokenizer.all_special_ids] = float("-inf")
        logs = logits.log_softmax(dim=-1)
        ids = logs.argmax(dim=1)
        opened.append((float(logs.max(dim=1).values.mean()), tokenizer.decode(ids).strip()))
        for name in fact.candidates:
            pieces = tokenizer(name, add_special_tokens=False)["input_ids"]
            if len(pieces) == number:
                mean = sum(float(logs[i, piece]) for i, piece in enumerate(pieces)) / number
                typed.append((mean, name))
    return max(opened)[1], max(typed)[1] if typed else ""


@pytest.mark.parametrize(("masks", "sites"), [(1, 256), (3, 256), (3, 3)])
def test_against_the_plain_model(model, encoder, tokenizer, masks, sites, monkeypatch):
    monkeypatch.setitem(predict_objects.__globals__, "_MASKS_PER_CHUNK", sites)
    found = predict_objects(encoder, tokenizer, facts(), max_masks=masks)
    for fact, guess in zip(facts(), found, strict=True):
        assert (guess.text, guess.typed) == slow(model, tokenizer, fact, masks)


def test_a_prompt_that_is_too_long_is_left_unanswered(encoder, tokenizer):
    long = Fact(
        id="1", relation="r", group="g", prompt=" ".join([*words("aa"), "[Y]"]), answers=("x",)
    )
    (guess,) = predict_objects(encoder, tokenizer, [long], max_masks=2)
    assert guess == ClozePrediction()


def test_scores_and_what_is_heard(encoder, tokenizer, tmp_path):
    place = tmp_path / "mlama1.1/sw"
    place.mkdir(parents=True)
    some = words("aa")
    (place / "templates.jsonl").write_text(
        json.dumps({"relation": "P36", "template": "[X] [Y] ."}), encoding="utf-8"
    )
    rows = [{"uuid": str(n), "sub_label": some[n], "obj_label": some[n + 1]} for n in range(5)]
    (place / "P36.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    task = find_task("mlama")
    heard: list[tuple[str, str]] = []
    job = ScoringJob(encoder, tokenizer, task, task.splits(tmp_path)[0], FeatureConfig(max_masks=2))
    scores = score_probe(
        job,
        on_prediction=lambda language, fact, guess: heard.append((language, fact.id)),
    )  # fmt: skip
    assert heard == [("sw", str(n)) for n in range(5)]
    found = {score.metric: score for score in scores}
    assert {"p@1", "p@1 T-REx", "typed p@1", "typed p@1 T-REx"} <= set(found)
    assert found["p@1"].scenario == "max_masks=2"
    assert found["typed p@1"].count == 5
    guesses = predict_objects(encoder, tokenizer, task.read(task.splits(tmp_path)[0]), max_masks=2)
    typed = sum(g.typed == row["obj_label"] for g, row in zip(guesses, rows, strict=True)) / 5
    assert found["typed p@1"].value == typed


def test_lama_has_one_mask_and_only_objects_of_one_token(encoder, tokenizer, tmp_path):
    place = tmp_path / "lama/data/ConceptNet"
    place.mkdir(parents=True)
    one = next(w for w in words("aa") if len(tokenizer.tokenize(w)) == 1)
    rows = [
        {"uuid": str(n), "obj_label": label, "masked_sentences": [f"{words('aa')[n]} [MASK]"]}
        for n, label in enumerate((one, f"{one} {one}"))
    ]
    (place / "test.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    task = find_task("lama")
    heard: list[str] = []
    job = ScoringJob(encoder, tokenizer, task, task.splits(tmp_path)[0], FeatureConfig())
    (score, *_) = score_probe(
        job,
        on_prediction=lambda _, fact, guess: heard.append(fact.id),
    )  # fmt: skip
    assert heard == ["0"]
    assert (score.metric, score.count, score.scenario) == ("p@1", 1, None)
    both = score_probe(
        ScoringJob(encoder, tokenizer, task, task.splits(tmp_path)[0], FeatureConfig(max_masks=2))
    )
    assert both[0].count == 2


def test_no_object_of_one_token_is_said(encoder, tokenizer, tmp_path):
    place = tmp_path / "lama/data/ConceptNet"
    place.mkdir(parents=True)
    row = {"uuid": "0", "obj_label": "ka lo ka", "masked_sentences": ["mi [MASK]"]}
    (place / "test.jsonl").write_text(json.dumps(row), encoding="utf-8")
    task = find_task("lama")
    with pytest.raises(IsoglotError, match="No object of lama in en is one token"):
        score_probe(ScoringJob(encoder, tokenizer, task, task.splits(tmp_path)[0], FeatureConfig()))


def test_a_tokenizer_without_a_mask_cannot_be_probed(encoder, corpus):
    maskless = AutoTokenizer.from_pretrained(corpus.tokenizer_folder, mask_token=None)
    with pytest.raises(ModelError, match="has no mask token"):
        predict_objects(encoder, maskless, facts(), max_masks=1)


def test_two_models_side_by_side(tmp_path):
    fact, other = facts()[0], facts()[1]
    for name, said in (("a", ["x", "same"]), ("b", [fact.answers[0], "SAME "])):
        with (tmp_path / name).open("w", encoding="utf-8") as stream:
            for one, text in zip((fact, other), said, strict=True):
                write_prediction(stream, "lama", "en", one, ClozePrediction(text=text))
    ((mine, theirs),) = differing_predictions(tmp_path / "a", tmp_path / "b")
    assert (mine["predicted"], mine["is_correct"]) == ("x", False)
    assert (theirs["predicted"], theirs["is_correct"]) == (fact.answers[0], True)


def test_of_two_answers_that_are_equally_likely_the_one_with_fewer_tokens_is_kept(tokenizer):
    prediction = ClozePrediction()
    logs = torch.full((1, len(tokenizer)), -9.0)
    logs[0, 7] = -1.0
    _choose_open(prediction, logs, tokenizer)
    first = prediction.text
    longer = torch.full((2, len(tokenizer)), -9.0)
    longer[:, 11] = -1.0
    _choose_open(prediction, longer, tokenizer)
    assert prediction.text == first == tokenizer.decode([7]).strip()
