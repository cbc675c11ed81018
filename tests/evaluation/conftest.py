from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from transformers import AutoTokenizer

from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from tests.tiny_corpus import words

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


@pytest.fixture
def data(tmp_path):
    """Tatoeba in two languages, a word alignment and the start of a BUCC."""
    folder = tmp_path / "data"
    (folder / "tatoeba").mkdir(parents=True)
    for code, shift in (("deu", 0), ("swh", 3)):
        first, second = words("aa")[shift : shift + 20], words("bb")[shift : shift + 20]
        rows = "\n".join(f"{a} {b}\t{b} {a}" for a, b in zip(first, second, strict=True))
        (folder / f"tatoeba/{code}-eng.tsv").write_text(rows, encoding="utf-8")
    place = folder / "xlm-align/de-en"
    place.mkdir(parents=True)
    (place / "test.de").write_text("\n".join(words("aa")[:5]), encoding="utf-8")
    (place / "test.en").write_text("\n".join(words("aa")[:5]), encoding="utf-8")
    (place / "alignv2.txt").write_text("\n".join(f"{n} 1 1 S" for n in range(5)), encoding="utf-8")
    place = folder / "bucc2018/de-en"
    place.mkdir(parents=True)
    for code in ("de", "en"):
        rows = "\n".join(f"{code}-{n}\t{word}" for n, word in enumerate(words("aa")[:9]))
        (place / f"de-en.training.{code}").write_text(rows, encoding="utf-8")
    gold = "\n".join(f"de-{n}\ten-{n}" for n in range(6))
    (place / "de-en.training.gold").write_text(gold, encoding="utf-8")
    return folder
