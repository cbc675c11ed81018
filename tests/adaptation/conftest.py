from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from isoglot.adaptation.findings import Findings
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.look import look
from isoglot.adaptation.plan import make_plan
from isoglot.adaptation.plan_files import AdaptPlan
from isoglot.adaptation.request import AdaptConfig
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from tests.adaptation.given import Given, make_given
from tests.adaptation.trials import tried

if TYPE_CHECKING:
    from isoglot.corpus import Corpus


@dataclass(frozen=True)
class Looked:
    """An adaptation that has been looked at: do not write into its folder."""

    config: AdaptConfig
    folder: AdaptFolder
    findings: Findings
    told: tuple[str, ...]


@pytest.fixture(scope="session")
def given(tmp_path_factory) -> Given:
    """Files and an encoder, shared: do not write into them."""
    return make_given(tmp_path_factory.mktemp("given"))


@pytest.fixture(scope="session")
def looked(given, tmp_path_factory) -> Looked:
    """Text of English, pairs with Swahili, which has no text of its own, and tests."""
    out = tmp_path_factory.mktemp("looked") / "out"
    config = AdaptConfig(
        encoder=str(given.encoder),
        text={"en": (str(given.text("en")),)},
        pairs={"en-sw": (str(given.pairs("en-sw")),)},
        tests=(str(given.raw / "test/en-de.tsv"),),
        heldout=60,
    )
    told: list[str] = []
    findings = look(config, AdaptFolder(Path(out)), tell=told.append)
    return Looked(config, AdaptFolder(Path(out)), findings, tuple(told))


@pytest.fixture(scope="package")
def random_model(corpus: Corpus, tmp_path_factory) -> Path:
    """A small random encoder for the tiny corpus's tokenizer, as a Hugging Face folder."""
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=64)
    place: Path = tmp_path_factory.mktemp("random") / "model"
    encoder = Encoder.build(settings, corpus.vocabulary).eval()
    export_encoder(encoder, place, tokenizer_folder=corpus.tokenizer_folder, card="")
    return place


@pytest.fixture
def planned(looked) -> AdaptPlan:
    """The plan of what was looked at, with made-up costs."""
    return make_plan(looked.findings, looked.config, looked.folder, tried)
