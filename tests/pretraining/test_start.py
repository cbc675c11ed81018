"""Runs that begin with a transplant, freeze the body, distill, and keep models along training."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import StreamConfig, TextStream
from isoglot.errors import CorpusError, ModelError, RecipeError
from isoglot.models.config import ExportConfig, ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.transplant.config import TransplantConfig
from isoglot.objectives.distill import Distill
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.config import LoggingConfig, PretrainConfig, StageConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig
from isoglot.pretraining.run import pretrain
from tests.models.tiny import ARCHITECTURES, tiny_encoder
from tests.models.transplant.tiny_tokenizers import model_for, of_words
from tests.tiny_corpus import words


class StopError(Exception):
    """A run ends where it should not."""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A model with another tokenizer, which knows the first words of `aa`."""
    folder = tmp_path_factory.mktemp("source")
    return model_for(of_words("bytes", folder, words("aa")[:60]))


def config(source, **changes) -> PretrainConfig:
    settings: dict[str, object] = {
        "model": ModelConfig(
            init_from=str(source), language_embeddings="none", freeze="body", dropout=0.1
        ),
        "transplant": TransplantConfig(),
        "stages": (
            StageConfig(steps=6, streams={"text": TextStream(objectives=("mlm", "distill"))}),
        ),
        "objectives": {"distill": Distill(teacher=str(source), languages=("aa",), max_tokens=64)},
        "batch": BatchConfig(rows=4, micro_rows=2, row_length=64),
        "optimizer": OptimizerConfig(learning_rate=1e-2, weight_decay=0.1),
        "checkpoint": CheckpointConfig(every_steps=2),
        "logging": LoggingConfig(validate_every_steps=0, validate_examples=3, trackers=()),
        "export": ExportConfig(every_steps=3),
        **changes,
    }
    return PretrainConfig(**settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def finished(corpus, source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    pretrain(config(source), corpus, folder)
    return folder


def weights(folder):
    return load_file(folder / "model.safetensors")


def body_of(names):
    return [name for name in names if ".encoder.layer." in name]


def test_it_begins_with_the_transplanted_model(corpus, source, finished):
    report = json.loads((finished / "transplanted/transplant.json").read_text())
    assert report["kinds"]["marker"] > 50
    assert (
        weights(finished / "transplanted").keys()
        == weights(finished / "intermediate/step-00000000").keys()
    )
    for name, weight in weights(finished / "transplanted").items():
        assert weight.equal(weights(finished / "intermediate/step-00000000")[name]), name
    assert {place.name for place in (finished / "intermediate").iterdir()} == {
        "step-00000000", "step-00000003", "step-00000006",
    }  # fmt: skip


def test_a_frozen_body_is_bit_for_bit_the_sources(source, finished):
    before, after = weights(source), weights(finished / "model")
    frozen = body_of(after)
    assert len(frozen) > 30
    for name in frozen:
        assert after[name].equal(before[name]), name
    start = weights(finished / "transplanted")
    trained = [name for name in after if not after[name].equal(start[name])]
    assert any("word_embeddings" in name for name in trained)
    assert any("position_embeddings" in name for name in trained)
    assert any("lm_head.dense" in name for name in trained)


def test_stopped_and_resumed_it_is_the_same_run(corpus, source, finished, tmp_path):
    def stop(step):
        if step.step == 3:
            raise StopError

    with pytest.raises(StopError):
        pretrain(config(source), corpus, tmp_path / "run", on_step=stop)
    # what was transplanted is there: the source is not asked for again
    moved = config(source, model=replace(config(source).model, init_from=str(tmp_path / "gone")))
    pretrain(moved, corpus, tmp_path / "run", resume=True)
    for place in ("model", "intermediate/step-00000006"):
        one, other = weights(finished / place), weights(tmp_path / "run" / place)
        assert all(one[name].equal(other[name]) for name in one)
    losses = [
        [
            (found["mlm/loss"], found["distill/loss"])
            for line in (folder / "metrics.jsonl").read_text().splitlines()
            if "mlm/loss" in (found := json.loads(line))
        ]
        for folder in (finished, tmp_path / "run")
    ]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 6


def test_a_seed_decides_what_is_drawn(corpus, source, tmp_path):
    plain = config(source, stages=(replace(config(source).stages[0], steps=1),))
    found = []
    for number, seed in enumerate((0, 0, 1)):
        pretrain(replace(plain, seed=seed), corpus, tmp_path / str(number))
        found.append(weights(tmp_path / str(number) / "transplanted"))
    name = next(name for name in found[0] if "word_embeddings" in name)
    assert found[0][name].equal(found[1][name])
    assert not found[0][name].equal(found[2][name])


def test_no_models_are_kept_unless_asked_for(corpus, tmp_path):
    model = ModelConfig(size="tiny", num_layers=1, hidden_size=16, num_heads=2, max_positions=64)
    streams: dict[str, StreamConfig] = {"text": TextStream(objectives=("mlm",))}
    plain = config(
        None,
        model=model,
        transplant=None,
        stages=(StageConfig(steps=1, streams=streams),),
        export=ExportConfig(),
    )
    pretrain(plain, corpus, tmp_path / "run")
    assert not (tmp_path / "run/intermediate").exists()
    assert not (tmp_path / "run/transplanted").exists()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_of_every_architecture_the_layers_are_frozen_and_the_words_are_not(architecture):
    encoder = tiny_encoder(architecture, freeze="body")
    trained = {name for name, weight in encoder.named_parameters() if weight.requires_grad}
    frozen = {name for name, weight in encoder.named_parameters() if not weight.requires_grad}
    assert encoder.model.get_input_embeddings().weight.requires_grad
    assert not any("layer" in name and "norm" not in name.lower() for name in trained)
    head = [name for name, _ in encoder.model.named_children() if name != "model"]
    assert any(name.startswith(tuple(f"model.{part}" for part in head)) for name in trained)
    assert len(frozen) > 10


def test_faults_are_said(corpus, source, tmp_path):
    with pytest.raises(RecipeError, match="name the model to transplant"):
        config(source, model=ModelConfig(size="tiny"))
    with pytest.raises(ModelError, match="There is no folder"):
        pretrain(
            config(source, model=ModelConfig(init_from=str(tmp_path / "none"))),
            corpus,
            tmp_path / "run",
        )
    with pytest.raises(CorpusError, match="is not the one of the corpus"):
        pretrain(config(source, transplant=None), corpus, tmp_path / "run")
    none = TransplantConfig(dictionaries=(str(tmp_path / "*.txt"),))
    with pytest.raises(ModelError, match="no file matches"):
        pretrain(config(source, transplant=none), corpus, tmp_path / "run")
    with pytest.raises(RecipeError, match="every_steps must be from 0"):
        ExportConfig(every_steps=-1)


def test_the_frozen_gradient_reaches_the_words(source):
    """What is frozen passes gradients on: the words' are those of a run without freezing."""
    found = []
    for freeze in ("none", "body"):
        settings = ModelConfig(init_from=str(source), language_embeddings="none", freeze=freeze)
        encoder = Encoder.from_pretrained(str(source), settings).eval()
        ids = torch.tensor([[0, 7, 8, 9, 2]])
        encoder.model(input_ids=ids).logits.square().mean().backward()
        found.append(encoder.model.get_input_embeddings().weight.grad)
    assert found[0] is not None
    assert torch.equal(*found)


def test_what_is_kept_opens_anywhere(corpus, finished):
    model = AutoModelForMaskedLM.from_pretrained(finished / "intermediate/step-00000003")
    assert model.config.vocab_size == corpus.vocabulary.size
