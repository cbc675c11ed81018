"""The tables of knowledge that a user names: opened, counted, refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from isoglot.adaptation.export import knowledge_origin
from isoglot.adaptation.findings import Findings, KnowledgeFacts
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.knowledge_plan import knowledge_source, sample_tables
from isoglot.adaptation.knowledge_tables import count_knowledge, open_knowledge
from isoglot.adaptation.look import knowledge_sentences, look
from isoglot.adaptation.request import AdaptConfig
from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import CorpusError
from isoglot.models.transplant.tokens import TokenizerTokens
from tests.adaptation.knowledge_tables import write_tables


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    return write_tables(tmp_path_factory.mktemp("knowledge") / "tables")


def request_of(given, tables: Path, codes: tuple[str, ...] = ("en", "sw")) -> AdaptConfig:
    text: dict[str, tuple[str, ...]] = {code: (str(given.text(code)),) for code in codes}
    return AdaptConfig(encoder=str(given.encoder), text=text, knowledge=str(tables), heldout=60)


def counted(given, tables: Path, codes: tuple[str, ...] = ("en", "sw")) -> KnowledgeFacts:
    found = open_knowledge(request_of(given, tables, codes))
    assert found is not None
    return count_knowledge(found, TokenizerTokens.open(given.encoder))


def linked(given, facts: KnowledgeFacts, folder: Path, tables: Path | None = None) -> Corpus:
    """A corpus with the knowledge that a plan would link."""
    source = knowledge_source(facts)
    settings = PrepareConfig(
        sources={
            "text": SourceConfig(files={code: (str(given.text(code)),) for code in facts.languages})
        },
        tokenizer=TokenizerConfig(folder=str(given.encoder)),
        knowledge=source if tables is None else type(source)(tables=str(tables)),
    )
    prepare(settings, folder)
    return Corpus.open(folder)


def test_counts_are_those_of_the_linked_store(given, tables, tmp_path):
    facts = counted(given, tables)
    store = linked(given, facts, tmp_path / "corpus").knowledge.manifest
    assert store.languages == ("en", "sw")
    assert facts.entities == store.entities == 199
    assert facts.facts == sum(store.triples.values())
    for code, one in facts.languages.items():
        there = store.counts[code]
        assert one.descriptions == there.descriptions
        assert one.mentions == sum(there.mentions.values())
        mean = there.description_tokens / there.descriptions
        assert one.description_tokens == pytest.approx(mean, rel=0.2), "of openings, not cut"
    assert store.triples["heldout"] > 0
    assert store.counts["sw"].mentions["heldout"] > 0


def test_languages_that_the_request_does_not_have_are_said(given, tables):
    facts = counted(given, tables)
    assert list(facts.languages) == ["en", "sw"]
    assert facts.left_out == ("de",)
    first, second = knowledge_sentences(facts)
    assert first.startswith("knowledge: 199 entities described in two languages or more, ")
    assert "; en 199 descriptions, " in first
    assert second == ("knowledge in de is left out: the request has no text of it (--text de=FILE)")


def test_findings_have_it_and_are_read_again(given, tables, tmp_path):
    config, folder = request_of(given, tables), AdaptFolder(tmp_path / "out")
    told: list[str] = []
    findings = look(config, folder, tell=told.append)
    assert findings.knowledge == counted(given, tables)
    assert any(one.startswith("knowledge: 199 entities") for one in told)
    assert Findings.from_json(json.loads(json.dumps(findings.to_json()))) == findings
    told.clear()
    again = look(config, folder, tell=told.append)
    # the machine is described again: its free disk space changes
    assert replace(again, machine=findings.machine) == findings
    assert told == ["data and encoder have not changed and are not read again"]


def test_tables_that_change_are_looked_at_again(given, tables, tmp_path):
    copy = tmp_path / "tables"
    shutil.copytree(tables, copy)
    config, folder = request_of(given, copy), AdaptFolder(tmp_path / "out")
    before = look(config, folder)
    claims = copy / "wikidata/claims-00000.parquet"
    pq.write_table(pq.read_table(claims).slice(0, 150), claims)
    after = look(config, folder)
    assert before.knowledge is not None
    assert after.knowledge is not None
    assert after.knowledge.facts == 150 < before.knowledge.facts
    folder.corpus.mkdir()
    (folder.corpus / "manifest.json").touch()
    pq.write_table(pq.read_table(claims).slice(0, 120), claims)
    with pytest.raises(CorpusError, match=r"claims-00000.parquet: has changed since .* was begun"):
        look(config, folder)


def test_a_sample_of_large_tables_links_too(given, tables, tmp_path, monkeypatch):
    facts = counted(given, tables)
    assert sample_tables(facts, tmp_path / "unused") == tables
    assert not (tmp_path / "unused").exists()
    monkeypatch.setattr("isoglot.adaptation.knowledge_plan.MAX_PAGES", 10)
    monkeypatch.setattr("isoglot.adaptation.knowledge_tables._SAMPLED_ITEMS", 20)
    facts = counted(given, tables)
    folder = sample_tables(facts, tmp_path / "sample")
    store = linked(given, facts, tmp_path / "corpus", folder).knowledge
    assert set(store.entities["item"].tolist()) == set(facts.sample)
    assert 20 < len(facts.sample) < 60
    assert len(store.mentions("sw", "train")) > 5
    assert len(store.triples("train")) > 5


def test_where_it_is_from_is_told(given, tables, tmp_path):
    corpus = linked(given, counted(given, tables), tmp_path / "corpus")
    number = sum(corpus.knowledge.manifest.triples.values())
    assert knowledge_origin(tables, corpus) == f"testbed (tsv): 199 entities, {number} facts"
    gone = Path("/nowhere/wiki-tables")
    assert knowledge_origin(gone, corpus).startswith("wiki-tables: 199 entities")
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    (dumps / "counts.json").write_text('{"files": {"/a/enwiki.xml.bz2": {}, "/a/all.json.gz": {}}}')
    assert knowledge_origin(dumps, corpus).startswith("all.json.gz, enwiki.xml.bz2: 199")


def test_held_out_facts_are_those_that_no_page_tells(given, tables):
    facts = counted(given, tables)
    assert (facts.heldout_share, facts.heldout_seed) == (0.05, 0)


def test_pages_of_dumps_are_held_out_by_the_number_of_mentions(given, tables, tmp_path):
    copy = tmp_path / "tables"
    shutil.copytree(tables, copy)
    (copy / "counts.json").write_text('{"files": {}}')
    assert counted(given, copy).heldout_share == 0.05, "for 2,000 mentions of the smallest language"
    graph = json.loads((tables / "counts.json").read_text("utf-8"))
    graph["settings"]["heldout_share"], graph["settings"]["heldout_seed"] = 0.2, 7
    (copy / "counts.json").write_text(json.dumps(graph), "utf-8")
    facts = counted(given, copy)
    assert (facts.heldout_share, facts.heldout_seed) == (0.2, 7)


def test_few_mentions_and_facts_are_refused(given, tmp_path):
    small = write_tables(tmp_path / "small", max_entities=12)
    with pytest.raises(
        CorpusError,
        match=r"small: entities described in two of the languages en, sw: 9, with \d+ mentions "
        r"and 7 facts; needed are 100 mentions or facts. Write its tables from more",
    ):
        counted(given, small)
