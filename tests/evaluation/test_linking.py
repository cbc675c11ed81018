"""Linking to entities: heads and states against loops over single sequences."""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import replace
from functools import partial

import pytest
import torch
from safetensors.torch import load_file

from isoglot.corpus.knowledge.heldout_files import write_heldout_files
from isoglot.errors import IsoglotError
from isoglot.evaluation.embed import pad_rows
from isoglot.evaluation.evaluate import evaluate, evaluate_tasks
from isoglot.evaluation.linking import _window
from isoglot.evaluation.loading import load_for_scoring
from isoglot.evaluation.probing import write_prediction
from isoglot.evaluation.settings import FeatureConfig
from isoglot.explore.mistake_files import read_predictions
from isoglot.models import objective_heads
from isoglot.pretraining.config import StageConfig
from isoglot.pretraining.run import pretrain
from isoglot.tasks import find_task
from isoglot.tasks.base import data_folders
from tests.pretraining import driver


@pytest.fixture(scope="module")
def trained(knowing, tmp_path_factory):
    """A model of two steps of XLM-K's tasks, and the files of its held-out knowledge."""
    folder = tmp_path_factory.mktemp("linking")
    config = driver.knowledge()
    stage = StageConfig(steps=2, streams=config.stages[1].streams)
    pretrain(replace(config, stages=(stage,)), knowing, folder / "run")
    write_heldout_files(knowing, folder / "eval", max_examples=15, candidates=8)
    return folder


def scores_of(folder, task, languages):
    found = evaluate(folder / "run", task, folder / "eval", languages=[languages])
    return {(s.metric, s.layer): s for s in found.scores if s.language == languages}


def states_of(encoder, tokenizer, ids):
    with torch.no_grad():
        return torch.stack(
            list(encoder(pad_rows([ids], tokenizer.pad_token_id), layers=True).layers)
        )


def slow_ranks(queries, keys, rows, numbers):
    """The rank of each right entity, one comparison at a time."""
    ranks = []
    for query, row in zip(queries, rows, strict=True):
        products = {name: float(query @ keys[number]) for name, number in numbers.items()}
        own = products.pop(row["entity"])
        others = [value for name, value in products.items() if name not in row.get("also", ())]
        better = sum(value > own + 1e-6 for value in others)
        equal = sum(abs(value - own) <= 1e-6 for value in others)
        ranks.append(1 + better + equal / 2)
    return ranks


@pytest.mark.parametrize("task", ["entity-linking", "object-entailment"])
def test_scores_are_those_of_a_slow_and_obvious_loop(trained, task):
    rows = [json.loads(x) for x in (trained / f"eval/{task}/aa-bb.jsonl").read_text().splitlines()]
    encoder, tokenizer = load_for_scoring(trained / "run/model")
    described = {row["entity"]: row["description"] for row in rows}
    numbers = {name: number for number, name in enumerate(described)}
    asked = [row for row in rows if "text" in row]
    keys = [
        states_of(encoder, tokenizer, tokenizer(x)["input_ids"])[:, 0] for x in described.values()
    ]
    queries = []
    for row in asked:
        encoded = tokenizer(row["text"], return_offsets_mapping=True)
        ids, site = list(encoded["input_ids"]), 0
        if task == "entity-linking":
            inside = [
                n
                for n, (begin, end) in enumerate(encoded["offset_mapping"])
                if begin < row["end"] and end > row["start"]
            ]
            for n in inside:
                ids[n] = tokenizer.mask_token_id
            site = inside[0]
        queries.append((states_of(encoder, tokenizer, ids), site))
    name = {"entity-linking": "entity", "object-entailment": "entailment"}[task]
    found = scores_of(trained, task, "aa-bb")
    # by the heads, whose weights are read from the checkpoint
    state = load_file(trained / "run/checkpoints/step-00000002/weights.safetensors")

    def project(side, vectors):
        first, second = (state[f"objectives.{name}.{side}_head.layers.{n}.weight"] for n in (0, 1))
        return (vectors @ first.T).relu() @ second.T

    projected = []
    for row, (layers, site) in zip(asked, queries, strict=True):
        vector = layers[-1, 0, site]
        if task == "object-entailment":
            relation = [5, 7, 9].index(row["relation"])
            vector = vector + state["objectives.entailment.relations.weight"][relation]
        projected.append(project("query", vector))
    ranks = slow_ranks(projected, [project("key", key[-1, 0]) for key in keys], asked, numbers)
    expected = {
        "hits@1": sum(rank <= 1 for rank in ranks) / len(ranks),
        "hits@10": sum(rank <= 10 for rank in ranks) / len(ranks),
        "mrr": sum(1 / rank for rank in ranks) / len(ranks),
    }
    for metric, value in expected.items():
        assert found[metric, None].value == pytest.approx(value)
        assert found[metric, None].count == len(asked)
    assert {layer for _, layer in found} == {None, 0, 1, 2}
    # by centered states of layer 1
    of_names = task == "entity-linking"
    own = torch.stack([x[1, 0, site] if of_names else x[1, 0].mean(0) for x, site in queries])
    means = torch.stack([key[1].mean(0) for key in keys])
    centered = [torch.nn.functional.normalize(x - x.mean(0), dim=-1) for x in (own, means)]
    ranks = slow_ranks(centered[0], centered[1], asked, numbers)
    assert found["mrr", 1].value == pytest.approx(sum(1 / rank for rank in ranks) / len(ranks))


@pytest.mark.parametrize("task", ["entity-linking", "object-entailment"])
def test_predictions_are_the_nearest_descriptions(trained, task, tmp_path):
    """As many right as hits@1 says, a positive margin where a description is wrong."""
    file = tmp_path / "predictions.jsonl"
    with file.open("w", encoding="utf-8") as stream:
        results = evaluate_tasks(
            trained / "run/model",
            [task],
            data_folders(trained / "eval"),
            FeatureConfig(),
            out=None,
            on_prediction=partial(write_prediction, stream),
        )
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for language in {row["language"] for row in rows}:
        own = [row for row in rows if row["language"] == language]
        (hits,) = [
            score
            for score in results.scores
            if (score.language, score.metric, score.layer) == (language, "hits@1", None)
        ]
        assert len(own) == hits.count
        assert sum(row["margin"] < 0 for row in own) == round(hits.value * hits.count)
        examples = (trained / f"eval/{task}/{language}.jsonl").read_text("utf-8").splitlines()
        described = {one["entity"]: one["description"] for one in map(json.loads, examples)}
        for row in own:
            assert row["answers"] == [described[row["id"]]]
            assert row["predicted"] in described.values()
            assert row["is_correct"] == (row["predicted"] == row["answers"][0])
            assert row["is_correct"] or row["margin"] >= 0
    assert any(row["is_correct"] for row in rows)
    assert not all(row["is_correct"] for row in rows)
    found = read_predictions(file)
    assert {task} == {name for name, _ in found}


@pytest.mark.parametrize("task", ["entity-linking", "object-entailment"])
def test_a_limit_leaves_all_candidates(trained, task):
    """A score among fewer descriptions would be higher without a better model."""
    part = next(one for one in find_task(task).splits_in(trained / "eval"))
    examples = find_task(task).read(part)
    few = find_task(task).limited(examples, 3)
    asked = [one for one in few if one.text]
    assert len(asked) == 3
    assert set(asked) <= set(examples)
    assert [(e.entity, e.description) for e in few] == [(e.entity, e.description) for e in examples]
    assert find_task(task).limited(examples, None) == examples
    found = evaluate_tasks(
        trained / "run/model",
        [task],
        data_folders(trained / "eval"),
        FeatureConfig(limit=1),
        out=None,
        languages=[part.language],
    )
    assert {score.count for score in found.scores} == {1}


def test_without_heads_the_last_layer_stands_for_them(trained, tmp_path):
    shutil.copytree(trained / "run/model", tmp_path / "run/model")
    shutil.copytree(trained / "eval", tmp_path / "eval")
    (tmp_path / "run/model" / objective_heads.FILE).unlink()
    found = scores_of(tmp_path, "object-entailment", "aa-cc")
    for metric in ("hits@1", "mrr"):
        assert found[metric, None].value == found[metric, 2].value


def test_an_unknown_relation_is_told(trained, tmp_path):
    file = tmp_path / "object-entailment/aa-bb.jsonl"
    file.parent.mkdir()
    row = {"entity": "Q1", "description": "x", "text": "y", "relation": 12345}
    file.write_text(json.dumps(row) + "\n" + json.dumps({"entity": "Q2", "description": "z"}))
    notes: list[str] = []
    evaluate(trained / "run", "object-entailment", tmp_path, note=notes.append)
    assert any("1 relations were not trained" in note for note in notes)
    file.write_text(json.dumps({"entity": "Q2", "description": "z"}))
    with pytest.raises(IsoglotError, match="no example has a text"):
        evaluate(trained / "run", "object-entailment", tmp_path)


def test_a_long_context_is_cut_around_its_name():
    ids = list(range(100))
    for site in (1, 5, 50, 97, 98):
        cut, place = _window(ids, site, 20)
        assert len(cut) == 20
        assert (cut[0], cut[-1], cut[place]) == (0, 99, site)
        assert cut[1:-1] == list(range(cut[1], cut[1] + 18))
    assert _window(ids, 7, 100) == (ids, 7)


def test_a_long_context_is_cut_without_a_warning(trained, tmp_path, caplog):
    file = tmp_path / "entity-linking/aa-bb.jsonl"
    file.parent.mkdir()
    row = {"entity": "Q1", "description": "x", "text": "y " * 2000, "start": 0, "end": 1}
    file.write_text(json.dumps(row) + "\n" + json.dumps({"entity": "Q2", "description": "z"}))
    logging.getLogger("transformers").addHandler(caplog.handler)
    evaluate(trained / "run", "entity-linking", tmp_path)
    logging.getLogger("transformers").removeHandler(caplog.handler)
    assert "longer than" not in caplog.text
