from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from transformers import AutoTokenizer

from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus import Corpus


@pytest.fixture(scope="package")
def tokenizer(corpus: Corpus):
    return AutoTokenizer.from_pretrained(corpus.tokenizer_folder)


@pytest.fixture(scope="package")
def encoder(corpus: Corpus) -> Encoder:
    """A small random encoder for the tiny corpus's tokenizer."""
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=3, hidden_size=32, num_heads=2, max_positions=40)
    return Encoder.build(settings, corpus.vocabulary).eval()


@pytest.fixture(scope="package")
def folder(corpus: Corpus, encoder: Encoder, tmp_path_factory) -> Path:
    """The same encoder as a Hugging Face folder."""
    place: Path = tmp_path_factory.mktemp("model") / "model"
    export_encoder(encoder, place, tokenizer_folder=corpus.tokenizer_folder, card="")
    return place
