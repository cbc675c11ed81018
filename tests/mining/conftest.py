from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.sentence_export import SentenceHead, export_sentence_transformers
from tests.tiny_corpus import words

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus import Corpus


@pytest.fixture(scope="package")
def run(corpus: Corpus, tmp_path_factory) -> Path:
    """A run with a small random model, and its sentence-transformers folder with a projection."""
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=40)
    encoder = Encoder.build(settings, corpus.vocabulary).eval()
    place: Path = tmp_path_factory.mktemp("run")
    export_encoder(encoder, place / "model", tokenizer_folder=corpus.tokenizer_folder, card="")
    head = SentenceHead(pooling="mean", layers=(torch.nn.Linear(32, 16),))
    export_sentence_transformers(
        place / "model", place / "sentence-transformers", head, max_length=12
    )
    return place


@pytest.fixture(scope="package")
def plain(run: Path, tmp_path_factory) -> Path:
    """The same model without a sentence-transformers folder beside it."""
    import shutil

    place: Path = tmp_path_factory.mktemp("plain") / "english"
    shutil.copytree(run / "model", place)
    return place


@pytest.fixture(scope="package")
def sides() -> tuple[list[str], list[str]]:
    """Sentences of both sides, most of them with a near twin on the other side."""
    one, two = words("aa"), words("bb")
    first = [f"{a} {b} {c}" for a, b, c in zip(one, one[5:], one[9:], strict=False)][:60]
    second = [f"{text} {w}" for text, w in zip(first, two, strict=False)][:50]
    return first, [*second, *two[:20]]
