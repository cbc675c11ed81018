"""The demo, as a newcomer runs it, with one seed instead of three."""

import json

import pytest
from rich.console import Console
from transformers import AutoModelForMaskedLM, AutoTokenizer

from isoglot.demo import demo


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_order_is_the_papers_and_the_folders_open(tmp_path):
    terminal = Console(record=True, width=160)
    checkpoint, *rows = demo(tmp_path / "demo", terminal, seeds=(1,))
    mlm, tlm, ppa = rows
    assert checkpoint.label == "checkpoint"
    assert [row.label for row in rows] == ["MLM", "MLM + TLM", "PPA"]
    assert tlm.average - mlm.average > 10
    assert ppa.average - tlm.average > 10
    for row in (tlm, ppa):
        assert abs(row.tokens - mlm.tokens) < 0.03 * mlm.tokens, "equal tokens"
    page = (tmp_path / "demo/report.html").read_text(encoding="utf-8")
    assert all(f">{row.label}<" in page for row in (checkpoint, mlm, tlm, ppa))
    said = terminal.export_text()
    assert "PPA, margin over MLM" in said
    for row in (mlm, ppa):
        assert str(row.model) in said
        model = AutoModelForMaskedLM.from_pretrained(row.model)
        tokenizer = AutoTokenizer.from_pretrained(row.model)
        batch = tokenizer(f"The {tokenizer.mask_token} sleeps.", return_tensors="pt")
        assert model(**batch).logits.shape[-1] == len(tokenizer)
        scores = json.loads((row.model.parent / "results.json").read_text())["scores"]
        assert {score["layer"] for score in scores} == {0, 1, 2}
        assert {score["language"] for score in scores} == {"en-es", "en-ru", "en-ar"}
