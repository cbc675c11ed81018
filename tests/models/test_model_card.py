"""Cards say what a run knows, in the header that the hub reads and in tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from isoglot.models.model_card import (
    DataRow,
    HeldoutScore,
    ModelCard,
    front_matter,
    with_limitations,
)

CARD = ModelCard(
    name="tiny",
    languages=("sw", "no", "zh_Hant"),
    objectives=("mlm", "tlm"),
    tokens_seen=12_345,
    init_from="someone/base",
    license="apache-2.0",
    data=(DataRow("sw", "text", 1_000, 20_000), DataRow("no-sw", "pairs", 50, 90_000)),
    scores=(HeldoutScore("mlm", "perplexity", 12.3456),),
    steps=400,
)


def header(text: str):
    return yaml.safe_load(text.split("---\n")[1])


@pytest.mark.parametrize(
    ("kind", "library"),
    [
        ("fill-mask", "transformers"),
        ("translation", "transformers"),
        ("sentence-similarity", "sentence-transformers"),
    ],
)
def test_the_header_is_what_the_hub_reads(kind, library):
    found = header(CARD.render(kind))
    assert found["pipeline_tag"] == kind
    assert found["library_name"] == library
    assert found["language"] == ["no", "sw", "zh-Hant"]
    assert found["license"] == "apache-2.0"
    assert found["base_model"] == ["someone/base"]
    assert ("sentence-transformers" in found["tags"]) == (kind == "sentence-similarity")


def test_tables_have_data_scores_and_pooling():
    text = CARD.render("sentence-similarity", "the mean state")
    for row in (
        "| no-sw | pairs | 50 | 90,000 |\n| sw | text | 1,000 | 20,000 |",
        "| mlm | perplexity | 12.35 |",
        "after 400 steps",
        "| sentence vector | the mean state |",
        "| objectives | mlm, tlm |",
        "| tokens seen | 12,345 |",
        "sw (Swahili)",
        "continued from `someone/base`",
        "SentenceTransformer(",
    ):
        assert row in text


def test_nothing_is_invented(tmp_path):
    bare = ModelCard(name="x", languages=("en",), objectives=("mlm",), tokens_seen=0)
    text = bare.render()
    assert "trained from random weights" in text
    for absent in ("license", "base_model", "Scores", "Training data", "sentence vector"):
        assert absent not in text
    (tmp_path / "config.json").write_text("{}")
    local = replace(bare, init_from=str(tmp_path)).render()
    assert "base_model" not in header(local), "a folder of this machine is no name on the hub"
    assert f"continued from `{tmp_path}`" in local
    assert "base_model" not in front_matter("fill-mask", base_model="/nowhere/at/all")


def test_many_languages_are_summed_up():
    rows = tuple(DataRow(f"l{n}", "text", n, 10 * n) for n in range(1, 101))
    text = replace(CARD, data=rows).render()
    assert "| l100 | text | 100 | 1,000 |" in text
    assert "| 40 more |  | 820 | 8,200 |" in text


def test_limitations_come_last():
    assert with_limitations("card\n", []) == "card\n"
    text = with_limitations("card\n", ["One.", "Two."])
    assert text == "card\n\n## What this folder cannot hold\n\nOne.\n\nTwo.\n"
