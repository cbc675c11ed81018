from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from transformers import AutoTokenizer

from isoglot.models import Encoder, ModelConfig, export

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
    settings = ModelConfig(size="tiny", layers=3, hidden=32, heads=2, max_positions=40)
    return Encoder.build(settings, corpus.vocabulary).eval()


@pytest.fixture(scope="package")
def folder(corpus: Corpus, encoder: Encoder, tmp_path_factory) -> Path:
    """The same encoder as a Hugging Face folder."""
    place: Path = tmp_path_factory.mktemp("model") / "model"
    export(encoder, place, tokenizer_folder=corpus.tokenizer_folder, card="")
    return place
