"""The demo, as a newcomer runs it: an encoder of two languages is adapted to a third."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from transformers import AutoModelForMaskedLM, AutoTokenizer

from isoglot.adaptation.comparison import BITS, RETRIEVAL
from isoglot.adaptation.run import AdaptOutcome
from isoglot.demo.run import KNOWN, NEW, run_demo

SMALL: dict[str, Any] = {
    "settings": ("stages.0.steps=100",),
    "known_size": {"num_sentences": 600, "num_pairs": 1},
    "new_size": {"num_sentences": 500, "num_pairs": 600},
    "world": {"num_concepts": 20, "max_entities": 8},
    "heldout": 50,
}


@pytest.fixture(scope="module")
def adapted(tmp_path_factory) -> tuple[Path, AdaptOutcome, str]:
    """The folder, the outcome and the output of a demo with few words and steps."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    console = Console(record=True, width=160)
    outcome = run_demo(folder, console, **SMALL)
    return folder, outcome, console.export_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_new_language_gets_better(adapted):
    _, outcome, _ = adapted
    assert outcome.finished
    scores = outcome.scores
    assert scores is not None
    (bits,) = (one for one in scores.of(BITS) if one.where == NEW)
    assert bits.verdict == "better"
    retrieval = {one.where: one for one in scores.of(RETRIEVAL)}
    assert set(retrieval) == {f"en→{NEW}", f"{NEW}→en"}
    for one in retrieval.values():
        assert one.verdict == "better"
        assert one.difference > 0.1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_encoder_has_not_read_the_text_of_the_adaptation(adapted):
    folder, _, _ = adapted
    for code in KNOWN:
        known, new = (
            set((folder / name / f"text/{code}.txt").read_text(encoding="utf-8").splitlines())
            for name in ("known/raw", "new")
        )
        assert len(known & new - {""}) == 0
        assert len(new) > 400


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_command_the_page_and_the_model_are_there(adapted):
    folder, outcome, text = adapted
    assert f"isoglot adapt {folder}/known/run/model --out {folder}/adapted" in text
    assert f"--pairs en-{NEW}={folder}/new/pairs/en-{NEW}.tsv" in text
    page = outcome.report.read_text(encoding="utf-8")
    assert "before" in page.lower()
    model = AutoModelForMaskedLM.from_pretrained(outcome.model)
    tokenizer = AutoTokenizer.from_pretrained(outcome.model)
    batch = tokenizer(f"The {tokenizer.mask_token} sleeps.", return_tensors="pt")
    assert model(**batch).logits.shape[-1] == len(tokenizer)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_finished_demo_does_nothing_again(adapted):
    folder, outcome, _ = adapted
    weights = outcome.model / "model.safetensors"
    before = weights.stat().st_mtime_ns
    console = Console(record=True, width=160)
    again = run_demo(folder, console, **SMALL)
    assert again.was_done
    assert again.scores == outcome.scores
    assert weights.stat().st_mtime_ns == before
    assert "Pre-training" not in console.export_text()
