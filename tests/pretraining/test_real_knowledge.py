"""XLM-K's tasks learn from a real graph: 250 countries in four languages, and their borders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.knowledge.graph.write_tables import (
    GraphConfig,
    GraphSource,
    write_graph_tables,
)
from isoglot.corpus.knowledge.link.config import LinkConfig
from isoglot.corpus.knowledge.link.run import link
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.pretraining.run import pretrain
from isoglot.recipe import load_recipe

LANGUAGES = ("de", "en", "es", "fr")
SETTINGS = [
    "batch.rows=16",
    "batch.micro_rows=16",
    "optimizer.learning_rate=0.002",
    "logging.validate_every_steps=100",
    "logging.validate_examples=100",
    "stages.0.steps=30",
    "stages.1.steps=270",
    "stages.1.streams.text.share=0.1",
    "stages.1.streams.mentions.share=0.6",
    "stages.1.streams.triples.share=0.3",
    *(
        f"objectives.{objective}.{setting}"
        for objective in ("entity", "entailment")
        for setting in ("queue.size=0", "normalize=true", "temperature=0.1")
    ),
]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif("ISOGLOT_DATA" not in os.environ, reason="needs the data pack")
def test_names_and_facts_of_countries_are_learned(tmp_path):
    """Held-out accuracy well above guessing, on facts that no text and no triple tells."""
    data = Path(os.environ["ISOGLOT_DATA"]) / "knowledge"
    source = GraphSource(format="countries", files=("countries/countries.json.xz",))
    graphs = GraphConfig(graphs={"c": source}, languages=LANGUAGES, heldout_share=0.1)
    write_graph_tables(graphs, tmp_path / "tables", base=data)
    texts: dict[str, tuple[str, ...]] = {
        code: (f"tables/text/{code}.txt.gz",) for code in LANGUAGES
    }
    config = PrepareConfig(
        sources={"graph": SourceConfig(files=texts)}, tokenizer=TokenizerConfig(vocab_size=1500)
    )
    prepare(config, tmp_path / "corpus", base=tmp_path)
    about = link(LinkConfig(heldout_share=0.1), tmp_path / "tables", tmp_path / "corpus")
    assert (about.entities, sum(about.triples.values())) == (250, 649)
    recipe = load_recipe("xlm-k-tiny", SETTINGS)
    pretrain(recipe, Corpus.open(tmp_path / "corpus"), tmp_path / "run")
    *_, last = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    for objective in ("entity", "entailment"):
        accuracy = last[f"valid/{objective}/mean/accuracy"]
        assert accuracy > 2 * last[f"valid/{objective}/mean/chance"], (objective, accuracy)
