from __future__ import annotations

from pathlib import Path

import pytest
import torch

from isoglot.corpus import Corpus
from isoglot.finetuning.settings import FinetuneConfig
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder


@pytest.fixture(scope="package")
def folder(corpus: Corpus, tmp_path_factory) -> Path:
    """A small random encoder of the tiny corpus's words."""
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=64)
    encoder = Encoder.build(settings, corpus.vocabulary)
    place: Path = tmp_path_factory.mktemp("model") / "model"
    export_encoder(encoder, place, tokenizer_folder=corpus.tokenizer_folder, card="")
    return place


@pytest.fixture
def settings() -> FinetuneConfig:
    """Short and fast."""
    return FinetuneConfig(epochs=2, batch_size=4, max_length=24, learning_rate=1e-3, stride=6)
