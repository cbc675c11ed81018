"""The demo, as a newcomer runs it, with one seed instead of three."""

import json

import pytest
from rich.console import Console
from transformers import AutoModelForMaskedLM, AutoTokenizer

from isoglot.demo import demo


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_tlm_is_ahead_of_mlm_and_the_folders_open(tmp_path):
    terminal = Console(record=True, width=160)
    checkpoint, mlm, tlm = demo(tmp_path / "demo", terminal, seeds=(1,))
    assert (checkpoint.label, mlm.label, tlm.label) == ("checkpoint", "MLM", "MLM + TLM")
    assert tlm.average - mlm.average > 10
    assert abs(tlm.tokens - mlm.tokens) < 0.02 * mlm.tokens, "equal tokens"
    said = terminal.export_text()
    assert "TLM's margin over MLM" in said
    for row in (mlm, tlm):
        assert str(row.model) in said
        model = AutoModelForMaskedLM.from_pretrained(row.model)
        tokenizer = AutoTokenizer.from_pretrained(row.model)
        batch = tokenizer(f"The {tokenizer.mask_token} sleeps.", return_tensors="pt")
        assert model(**batch).logits.shape[-1] == len(tokenizer)
        scores = json.loads((row.model.parent / "results.json").read_text())["scores"]
        assert {score["layer"] for score in scores} == {0, 1, 2}
        assert {score["language"] for score in scores} == {"en-es", "en-ru", "en-ar"}
