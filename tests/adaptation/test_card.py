"""The card of an adapted encoder: what the hub reads from its header, and the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from huggingface_hub import ModelCard as HubCard

from isoglot.adaptation.card import adapted_card, change_and_interval, terminal_rows, verdict
from isoglot.adaptation.comparison import (
    ALIGNMENT,
    BITS,
    RETRIEVAL,
    TOKENS,
    VECTORS,
    AdaptScores,
    Choice,
    Comparison,
)
from isoglot.models.model_card import DataRow, ModelCard


def compared(metric, where, before, after, low, high):
    return Comparison(
        metric=metric, where=where, before=before, after=after, low=low, high=high, count=100
    )


SCORES = AdaptScores(
    comparisons=(
        compared(BITS, "en", 1.5, 1.53, 0.01, 0.05),
        compared(BITS, "no", 4.0, 2.0, -2.2, -1.8),
        compared(RETRIEVAL, "en→no", 0.1, 0.6, 0.4, 0.6),
        compared(VECTORS, "en-no", 0.05, 0.55, 0.4, 0.6),
        compared(ALIGNMENT, "de-en", 0.5, 0.45, -0.1, 0.01),
        compared(TOKENS, "no", 2.0, 2.0, 0.0, 0.0),
    ),
    choices=(Choice(what="layer", choice="layer 3", data="70 development pairs"),),
    speed=(800.4, 1200.0),
)
CARD = ModelCard(
    name="adapted",
    languages=("no", "en"),
    objectives=("moco", "mlm"),
    tokens_seen=1000,
    init_from="FacebookAI/xlm-roberta-base",
    license="mit",
    data=(DataRow("no", "text", 10, 200),),
    recipe="adapt",
)


@pytest.mark.parametrize("kind", ["fill-mask", "sentence-similarity"])
def test_the_hub_reads_languages_license_base_model_and_scores(kind):
    card = HubCard(adapted_card(CARD, SCORES, kind, pooling="the mean state"))
    data: Any = card.data
    assert data.language == ["en", "no"], "and not a boolean"
    assert data.license == "mit"
    assert data.base_model == "FacebookAI/xlm-roberta-base"
    assert data.pipeline_tag == kind
    assert data.model_name == "adapted"
    found = {(one.metric_type, one.dataset_config): one for one in data.eval_results}
    assert found["bits-per-character", "no"].metric_value == 2.0
    assert found["bits-per-character", "no"].task_type == "fill-mask"
    retrieved = "en→no" if kind == "fill-mask" else "en-no"
    assert found["accuracy", retrieved].metric_value == (0.6 if kind == "fill-mask" else 0.55)
    assert found["alignment-error-rate", "de-en"].dataset_type == "gold-word-alignments"
    assert len(found) == 4, "tokens per word are no score of the hub"


def test_a_folder_of_this_machine_is_no_base_model_of_the_hub(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    card = HubCard(adapted_card(replace(CARD, init_from=str(tmp_path)), SCORES, "fill-mask"))
    assert card.data.to_dict().get("base_model") is None
    assert str(tmp_path) in card.text


def test_the_card_has_the_table_and_what_was_chosen():
    text = adapted_card(CARD, SCORES, "fill-mask")
    assert "| bits per character | en | 1.500 | 1.530 | +2.0 % (+0.7 to +3.3) | worse |" in text
    assert "Chosen on 70 development pairs." in text
    assert "`adapt`, with all settings in recipe.yaml" in text


def test_rows_that_are_printed():
    rows = list(terminal_rows(SCORES))
    assert rows[2] == (
        "retrieval", "en→no", "10.0 %", "60.0 %", "+50.0 points (+40.0 to +60.0)", "better"
    )  # fmt: skip
    assert rows[4][-1] == "no clear change"
    assert rows[5][-2:] == ("0", "unchanged")
    assert rows[-1] == (
        "sentences per second",
        "",
        "800",
        "1,200",
        "no interval: other programs change it",
        "",
    )
    assert change_and_interval(SCORES.comparisons[1]) == "-50.0 % (-55.0 to -45.0)"
    assert verdict(SCORES.comparisons[1]) == "better"
