from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from isoglot.evaluation.loading import load_for_scoring
from tests.evaluation.tiny_tokenizers import LINES, make_tokenizer, save_model

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = [
    (LINES[0], LINES[1]),
    (LINES[4], LINES[0]),
    ("the fox", "rafiki yangu asubuhi"),
    ("", "the fox"),
    ("the", "dog"),
    (LINES[1], ""),
    (LINES[4] * 2, LINES[4]),
    ("the lazy dog and the friend jumps", "the the the fox"),
    (LINES[2], LINES[3]),
]


@pytest.fixture(scope="package")
def folder(tmp_path_factory) -> Path:
    """A random BERT of three layers with a WordPiece vocabulary."""
    place: Path = tmp_path_factory.mktemp("model") / "model"
    return save_model(make_tokenizer("wordpiece"), place, num_hidden_layers=3)


@pytest.fixture(scope="package")
def model(folder: Path):
    """The encoder, on the CPU, and the tokenizer."""
    encoder, tokenizer = load_for_scoring(folder)
    return encoder.cpu(), tokenizer
