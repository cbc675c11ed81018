"""Whole runs with XLM-K's tasks: killed and resumed, on two processes, on another store."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from isoglot.batching.streams import DescriptionStream
from isoglot.corpus import Corpus
from isoglot.errors import CheckpointError, CorpusError, ModelError
from isoglot.models import objective_heads
from isoglot.objectives.contrast.descriptions import TrainedHeads
from isoglot.objectives.entailment import ObjectEntailment
from isoglot.objectives.entity import EntityPrediction
from isoglot.pretraining.config import StageConfig, data_fingerprint
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver
from tests.tiny_knowledge import write_store

TOTAL = sum(driver.KNOWLEDGE_STEPS)
LAST = f"checkpoints/step-{TOTAL:08d}/weights.safetensors"


def short(*streams, **objectives):
    config = driver.knowledge()
    stage = config.stages[1]
    kept = {name: stage.streams[name] for name in streams} if streams else stage.streams
    return replace(
        config,
        stages=(StageConfig(steps=2, streams=kept),),
        objectives={**config.objectives, **objectives},
    )


def test_held_out_mentions_and_triples_are_scored_and_leave_the_queues_alone(knowing, tmp_path):
    pretrain(short(), knowing, tmp_path / "run")
    *steps, last = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    assert {f"valid/entity/{code}/loss" for code in ("aa", "bb", "cc", "mean")} <= last.keys()
    assert {f"valid/entailment/{code}/loss" for code in ("aa", "bb", "cc")} <= last.keys()
    for objective in ("entity", "entailment"):
        by_language = [last[f"valid/{objective}/{code}/accuracy"] for code in ("aa", "bb", "cc")]
        assert last[f"valid/{objective}/mean/accuracy"] == pytest.approx(sum(by_language) / 3)
        assert all(0 <= value <= 1 for value in by_language)
        # a micro-batch has at most 8 draws and the queue 12 keys
        assert 1 / 20 <= last[f"valid/{objective}/mean/chance"] < 1
    assert not any(name.startswith("valid/mlm") and "accuracy" in name for name in last)
    state = load_file(tmp_path / "run/checkpoints/step-00000002/weights.safetensors")
    for objective in ("entity", "entailment"):
        pushed = sum(step.get(f"{objective}/count", 0) for step in steps)
        assert int(state[f"objectives.{objective}.queue.pointer"]) == pushed % 12


def test_the_trained_heads_are_exported_with_the_model(knowing, tmp_path):
    """What is loaded computes what the trained modules compute, the queue left out."""
    pretrain(short(), knowing, tmp_path / "run")
    state = load_file(tmp_path / "run/checkpoints/step-00000002/weights.safetensors")
    heads = objective_heads.load(tmp_path / "run/model")
    assert heads.keys() == {"entity", "entailment"}
    width = state["objectives.entailment.relations.weight"].shape[1]
    states, rows = torch.randn(4, width), torch.tensor([0, 2, 1, 0])
    assert heads["entailment"].settings["relations"] == [5, 7, 9]
    for name, head in heads.items():
        assert not any("queue" in key for key in head.tensors)
        loaded = TrainedHeads(head, width)
        for side, compute in (("query", loaded.query), ("key", loaded.key)):
            first, second = (
                state[f"objectives.{name}.{side}_head.layers.{layer}.weight"] for layer in (0, 1)
            )
            expected = (states @ first.T).relu() @ second.T
            assert torch.allclose(compute(states), expected, atol=1e-6)
        if name == "entailment":
            moved = states + state["objectives.entailment.relations.weight"][rows]
            assert torch.allclose(loaded.query(states, rows), loaded.query(moved), atol=1e-6)
    with pytest.raises(ModelError, match="width"):
        TrainedHeads(heads["entity"], width + 1)


@pytest.mark.parametrize(
    ("objectives", "streams"),
    [
        ({"entity": EntityPrediction(variant="released", pooling="mean")}, ["mentions"]),
        ({"entailment": ObjectEntailment(loss="classify")}, ["triples"]),
    ],
)
def test_the_variants_train(knowing, tmp_path, objectives, streams):
    pretrain(short(*streams, **objectives), knowing, tmp_path / "run")
    *steps, _ = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    (name,) = objectives
    assert all(step[f"{name}/loss"] > 0 for step in steps)
    head = objective_heads.load(tmp_path / "run/model")[name]
    if name == "entity":
        assert head.settings["batch_norm"]
        assert TrainedHeads(head, 32).key(torch.randn(2, 32)).shape == (2, 32)
    else:
        assert head.settings["classified"] == [5, 7, 9]


def test_descriptions_are_a_text_for_mlm(knowing, tmp_path):
    config = short("text")
    streams = {**config.stages[0].streams, "descriptions": DescriptionStream(objectives=("mlm",))}
    pretrain(
        replace(config, stages=(StageConfig(steps=1, streams=streams),)), knowing, tmp_path / "run"
    )
    *_, last = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    assert "valid/descriptions.mlm/mean/perplexity" in last


def test_a_run_goes_on_with_the_knowledge_it_began_with_and_no_other(knowing, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(knowing.folder, folder)
    pretrain(short(), Corpus.open(folder), tmp_path / "run")
    pretrain(short("text"), Corpus.open(folder), tmp_path / "plain")
    write_store(Corpus.open(folder), seed=1)
    with pytest.raises(CheckpointError, match="was trained on another corpus"):
        pretrain(short(), Corpus.open(folder), tmp_path / "run", resume=True)
    again = pretrain(short("text"), Corpus.open(folder), tmp_path / "plain", resume=True)
    assert again.finished, "a run without knowledge does not mind"


def test_the_fingerprint_is_the_corpuss_own_where_no_knowledge_is_read(knowing, corpus, tmp_path):
    assert data_fingerprint(short("text"), corpus) == corpus.fingerprint
    assert data_fingerprint(short(), knowing) != knowing.fingerprint
    with pytest.raises(CorpusError, match="Run isoglot knowledge link"):
        pretrain(short(), corpus, tmp_path / "run")
