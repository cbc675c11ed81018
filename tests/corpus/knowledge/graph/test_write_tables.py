"""Knowledge graphs to tables: pages tell facts, held-out facts nowhere, and linking reads them."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
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
from isoglot.errors import CorpusError, RecipeError

TOWNS = 40


@pytest.fixture
def files(tmp_path: Path) -> Path:
    names = [f"Q{n}\t{code}\t{word} {n}" for n in range(TOWNS) for code, word in
             (("en", "town"), ("de", "Stadt"))]  # fmt: skip
    names.append("Q100\ten\tlonely")
    (tmp_path / "names.tsv").write_text("\n".join(names))
    facts = [f"Q{n}\t{relation}\tQ{(7 * n + 1) % TOWNS}" for n in range(TOWNS) for relation in
             ("P47", "near")]  # fmt: skip
    facts += [f"Q{(7 * n + 1) % TOWNS}\tinverse\tQ{n}" for n in range(TOWNS)]
    (tmp_path / "triples.tsv").write_text("\n".join([*facts, "Q1\tP47\tQ100", "Q1\tP47\tQ999"]))
    (tmp_path / "relations.tsv").write_text("P47\ten\tborders\nP47\tde\tgrenzt an\nnear\ten\tnear")
    return tmp_path


def config_of(**more: Any) -> GraphConfig:
    source = GraphSource(files=("names.tsv", "relations.tsv", "triples.tsv"))
    return GraphConfig(graphs={"towns": source}, **more)


def rows(folder: Path, pattern: str) -> list[dict[str, Any]]:
    return [row for file in sorted(folder.glob(pattern)) for row in pq.read_table(file).to_pylist()]


def test_a_page_is_a_name_and_its_facts_with_links_to_objects(files):
    counts = write_graph_tables(config_of(heldout_share=0), files / "tables", base=files)
    assert counts["entities"] == TOWNS
    assert counts["entities in too few languages"] == 1
    assert (counts["facts"], counts["facts with an entity that is left out"]) == (3 * TOWNS, 2)
    pages = {page["title"]: page for page in rows(files / "tables", "wikipedia/de/pages-*")}
    assert pages["Q2"]["opening"].startswith("Stadt 2. Stadt 2 grenzt an Stadt 15. Stadt 2 near ")
    assert pages["Q2"]["lead"] == "Stadt 2."
    for sentence in rows(files / "tables", "wikipedia/de/sentences-*"):
        for found in sentence["links"]:
            number = found["target"].removeprefix("Q")
            assert sentence["text"][found["start"] : found["end"]] == f"Stadt {number}"
    english = rows(files / "tables", "wikipedia/en/sentences-*")
    lonely = [row for row in english if "lonely" in row["text"]]
    assert [row["links"] for row in lonely] == [[]]
    with gzip.open(files / "tables/text/en.txt.gz", "rt") as text:
        assert text.read().startswith("town 0.\ntown 0 borders town 1.\n")


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_facts_in_no_text_are_those_between_two_items_in_all_relations(files, share):
    counts = write_graph_tables(config_of(heldout_share=share), files / "tables", base=files)
    told = {
        frozenset((f"Q{row['page']}", found["target"]))
        for row in rows(files / "tables", "wikipedia/en/sentences-*")
        for found in row["links"]
    }
    claims = [
        frozenset((f"Q{row['subject']}", f"Q{row['object']}"))
        for row in rows(files / "tables", "wikidata/claims-*")
    ]
    untold = [pair for pair in claims if pair not in told]
    assert (share - 0.2) * len(claims) < len(untold) < (share + 0.2) * len(claims)
    # those of an entity that is left out are no facts of the tables
    assert counts["facts in no text"] == len(untold)


def prepared(files: Path) -> Path:
    texts: dict[str, tuple[str, ...]] = {
        code: (f"tables/text/{code}.txt.gz",) for code in ("en", "de")
    }
    config = PrepareConfig(
        sources={"graph": SourceConfig(files=texts)}, tokenizer=TokenizerConfig(vocab_size=400)
    )
    prepare(config, files / "corpus", base=files)
    return files / "corpus"


def test_linking_holds_out_what_no_page_tells(files):
    write_graph_tables(config_of(heldout_share=0.3), files / "tables", base=files)
    corpus = prepared(files)
    about = link(LinkConfig(heldout_share=0.2), files / "tables", corpus)
    assert about.entities == TOWNS
    assert about.relations == 3
    knowledge = Corpus.open(corpus).knowledge
    held = knowledge.triples("heldout")
    assert 0 < len(held) < len(knowledge.triples("train"))
    items = knowledge.entities["item"]
    told = {
        frozenset((row["page"], int(found["target"][1:])))
        for row in rows(files / "tables", "wikipedia/*/sentences-*")
        for found in row["links"]
    }
    for subject, object_ in zip(held["subject"], held["object"], strict=True):
        assert frozenset((int(items[subject]), int(items[object_]))) not in told
    for settings in (LinkConfig(heldout_share=0.31), LinkConfig(heldout_share=0.1, heldout_seed=1)):
        with pytest.raises(CorpusError, match="facts that are told"):
            link(settings, files / "tables", corpus)
    link(LinkConfig(heldout_share=0, heldout_seed=1), files / "tables", corpus)


def test_the_first_facts_of_an_entity_are_told(files):
    write_graph_tables(config_of(heldout_share=0, max_facts=1), files / "tables", base=files)
    sentences = rows(files / "tables", "wikipedia/en/sentences-*")
    assert [row["index"] for row in sentences] == [0, 1] * TOWNS
    assert all("borders" in row["text"] for row in sentences[1::2])


def test_faults_are_sentences(files):
    with pytest.raises(RecipeError, match="graphs: there are none"):
        write_graph_tables(GraphConfig(), files / "tables")
    with pytest.raises(CorpusError, match="is not empty"):
        write_graph_tables(config_of(), files, base=files)
    with pytest.raises(CorpusError, match="No entity has a name in 3 languages"):
        write_graph_tables(config_of(min_languages=3), files / "tables", base=files)
    with pytest.raises(CorpusError, match=r"\(languages: english, de\). The files have .* en, de"):
        write_graph_tables(config_of(languages=("english", "de")), files / "tables", base=files)
    with pytest.raises(CorpusError, match="no such file"):
        write_graph_tables(config_of(), files / "tables", base=files / "else")


@pytest.mark.slow
@pytest.mark.skipif("ISOGLOT_DATA" not in os.environ, reason="needs the data pack")
def test_the_graphs_of_the_data_pack(tmp_path):
    data = Path(os.environ["ISOGLOT_DATA"]) / "knowledge"
    countries = GraphSource(format="countries", files=("countries/countries.json.xz",))
    graphs = {
        "zh-en": GraphSource(format="dbp15k", files=("dbp15k/zh_en",), languages=("zh", "en")),
        "fr-en": GraphSource(format="dbp15k", files=("dbp15k/fr_en",), languages=("fr", "en")),
        "countries": countries,
        "wikidata": GraphSource(
            format="wikidata", files=("wikidata/dump-excerpt.json.xz", "wikidata/wdtk-wb*.json.xz")
        ),
        "kgtk": GraphSource(format="kgtk", files=("wikidata/kgtk-wikidata_sample.tsv.xz",)),
    }
    config = GraphConfig(graphs=graphs, languages=("en", "fr", "zh"))
    counts = write_graph_tables(config, tmp_path / "tables", base=data)
    assert counts["entities"] > 8_900
    assert counts["facts"] > 34_000
    assert counts["languages"].keys() == {"en", "fr", "zh"}
