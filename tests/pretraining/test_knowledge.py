"""Whole runs with XLM-K's tasks: killed and resumed, on two processes, on another store."""

import json
import shutil
from dataclasses import replace

import pytest
from safetensors.torch import load_file

from isoglot.batching.streams import DescriptionStream
from isoglot.corpus import Corpus
from isoglot.errors import CheckpointError, CorpusError
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
    state = load_file(tmp_path / "run/checkpoints/step-00000002/weights.safetensors")
    for objective in ("entity", "entailment"):
        pushed = sum(step.get(f"{objective}/count", 0) for step in steps)
        assert int(state[f"objectives.{objective}.queue.pointer"]) == pushed % 12


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
