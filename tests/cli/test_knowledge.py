"""`isoglot knowledge`: dumps to tables, tables to the knowledge of a corpus, and what is shown."""

from __future__ import annotations

import bz2
import re

import pytest

from tests.cli.test_docs import blocks
from tests.corpus.knowledge.small_dumps import write_dumps

PREPARE = """\
sources:
  wiki: {files: {en: [tables/text/en.txt.gz], de: [tables/text/de.txt.gz]}}
tokenizer: {vocab_size: 400}
heldout_share: 0.0
"""


@pytest.fixture
def tables(isoglot, workdir):
    write_dumps(workdir / "dumps")
    said = isoglot("knowledge", "extract", "dumps/dumps.yaml", "--out", "tables")
    assert said.code == 0, said.err
    return said


@pytest.fixture
def corpus(isoglot, workdir, tables):
    (workdir / "prepare.yaml").write_text(PREPARE)
    assert isoglot("prepare", "prepare.yaml", "--out", "corpus").code == 0
    return workdir / "corpus"


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_extract_says_what_became_of_each_dump(tables):
    assert "extract" in tables.err
    shown = rows(tables.out)
    assert ["enwiki.xml.bz2", "10", "5", "4", "1"] in [row[:5] for row in shown]
    assert any(row[:4] == ["wikidata.json.bz2", "6", "5", "8"] for row in shown)
    assert "tables: tables" in tables.out


def test_ctrl_c_says_what_is_kept(isoglot, corpus, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("isoglot.corpus.knowledge.extract.extract", stop)
    monkeypatch.setattr("isoglot.corpus.knowledge.link.run.link", stop)
    for verb in (["extract", "dumps/dumps.yaml", "-o", "x"], ["link", "tables", "-c", "corpus"]):
        said = isoglot("knowledge", *verb)
        assert said.code == 130
        assert "stopped: finished work is kept; run the command again" in said.err


def test_link_says_what_it_kept_and_why_not_the_rest(isoglot, corpus):
    said = isoglot("knowledge", "link", "tables", "-c", "corpus", "--set", "heldout_share=0")
    assert said.code == 0, said.err
    assert said.err.split(" ...\n")[:3] == ["titles", "descriptions", "links"]
    assert ["de", "3", "4", "0", "1", "red", "link"] in rows(said.out)
    assert "4 entities; 4 triples (0 held out) of 3 relations" in said.out
    assert "claims dropped: 1 object without description, 1 repeated" in said.out
    again = isoglot("knowledge", "link", "tables", "-c", "corpus", "--set", "heldout_share=0")
    assert again.out == said.out
    assert again.err == "up to date ...\n"


def test_tables_of_other_dumps_are_not_removed_without_a_word(isoglot, workdir, tables):
    assert "had tables of" not in tables.err
    again = isoglot("knowledge", "extract", "dumps/dumps.yaml", "--out", "tables")
    assert "had tables of" not in again.err
    one = workdir / "dumps/one.yaml"
    one.write_text("wikipedia: {en: [enwiki.xml.bz2]}\n")
    said = isoglot("knowledge", "extract", "dumps/one.yaml", "--out", "tables")
    assert said.code == 0, said.err
    assert "tables had tables of de, Wikidata too, which dumps/one.yaml does not name" in said.err


def test_link_says_that_dumps_do_not_belong_together(isoglot, corpus, workdir):
    said = isoglot("knowledge", "link", "tables", "-c", "corpus")
    assert "note:" not in said.err
    dump = workdir / "dumps/wikidata.json.bz2"
    items = bz2.decompress(dump.read_bytes()).splitlines(keepends=True)
    small = [line for line in items if b'"Q1471"' in line]  # the Seine
    dump.write_bytes(bz2.compress(b"[\n" + b"".join(small) + b"]\n"))
    isoglot("knowledge", "extract", "dumps/dumps.yaml", "--out", "tables")
    said = isoglot("knowledge", "link", "tables", "-c", "corpus")
    assert said.code == 0, said.err
    assert re.search(r"note: \d+ % of the links lead to no item of Wikidata \(red link", said.err)
    assert "No fact is kept" in said.err


def test_show_corpus_says_what_it_knows(isoglot, corpus):
    before = isoglot("show", "corpus", "corpus", "--samples", "0")
    assert "entities" not in before.out
    isoglot("knowledge", "link", "tables", "-c", "corpus")
    after = isoglot("show", "corpus", "corpus", "--samples", "0", "--alpha", "0").out
    assert "4 entities; 4 triples" in after
    assert ["de", "75.0", "%"] in [row[:3] for row in rows(after)]
    assert ["en", "100.0", "%"] in [row[:3] for row in rows(after)]
    assert after.count("50.0 %") >= 2
    assert "entities described in 2 languages or more: 75.0 %" in after


def test_the_python_of_knowledge_md(isoglot, corpus, workdir, capsys):
    isoglot("knowledge", "link", "tables", "-c", "corpus")
    (workdir / "corpora").mkdir()
    corpus.rename(workdir / "corpora/wiki")
    (block,) = (block for block in blocks("knowledge.md") if block.language == "python")
    exec(block.text, {})  # noqa: S102 (our own documentation)
    assert capsys.readouterr().out == "France ('de', 'en')\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["extract", "dumps/dumps.yaml", "-o", "x", "--set", "wikipedia.xq=[enwiki.xml.bz2]"],
            "'xq' is no",
        ),
        (["link", "dumps", "-c", "corpus"], "has no counts.json"),
        (["link", "tables", "-c", "tables"], "is not a prepared corpus"),
        (["link", "tables", "-c", "corpus", "--set", "languages=[fr]"], "no Wikipedia in 'fr'"),
        (["link", "tables", "-c", "corpus", "--set", "hops=2"], "hops"),
    ],
)
def test_faults_are_said_in_a_sentence(isoglot, corpus, arguments, said):
    result = isoglot("knowledge", *arguments)
    assert result.code == 1
    assert said in result.err
    assert "Traceback" not in result.err


def test_files_of_an_earlier_call_are_not_scored_without_a_word(isoglot, corpus, workdir):
    """After linking other languages, the files of those left out would stay among the tasks."""
    linked = isoglot("knowledge", "link", "tables", "-c", "corpus", "--set", "heldout_share=0.9")
    assert linked.code == 0, linked.err
    old = workdir / "eval/entity-linking/aa-bb.jsonl"
    old.parent.mkdir(parents=True)
    first = isoglot("knowledge", "heldout", "corpus", "--out", "other")
    assert first.code == 0, first.err
    assert "earlier call" not in first.err
    old.write_text("{}\n")
    said = isoglot("knowledge", "heldout", "corpus", "--out", "eval")
    assert "eval has files of an earlier call too" in said.err
    assert "scores as well: entity-linking/aa-bb.jsonl." in said.err
