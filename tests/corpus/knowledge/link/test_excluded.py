"""Sentences of evaluation files are in no page and in no description; prepare links by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus import Corpus
from isoglot.corpus.decontamination import letters_of
from isoglot.corpus.knowledge.link.config import KnowledgeSource, LinkConfig
from isoglot.corpus.knowledge.link.excluded import leave_out
from isoglot.corpus.knowledge.link.run import is_linked, link
from isoglot.corpus.knowledge.wikipedia import join_opening
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import is_prepared, prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.corpus.tokenization.vocabulary import open_tokenizer
from isoglot.errors import CorpusError
from isoglot.recipe import dump, load_prepare
from tests.adaptation.knowledge_tables import write_tables

EXCLUDED = "in an evaluation file"


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    return write_tables(tmp_path_factory.mktemp("knowledge") / "tables", languages=("en", "sw"))


@pytest.fixture(scope="module")
def config(tables) -> PrepareConfig:
    files: dict[str, tuple[str, ...]] = {code: (f"text/{code}.txt.gz",) for code in ("en", "sw")}
    return PrepareConfig(
        sources={"wiki": SourceConfig(files=files)},
        tokenizer=TokenizerConfig(vocab_size=400),
        heldout_share=0.0,
    )


def evaluation_file(tables: Path, folder: Path) -> tuple[Path, set[str]]:
    """An evaluation file with sentences of pages, in other spacing and case; these sentences."""
    rows = pq.read_table(tables / "wikipedia/sw/sentences-00000.parquet").to_pylist()
    # of a text of several sentences, each would be looked for
    single = [row["text"] for row in rows if len(row["text"]) > 25 and ". " not in row["text"]]
    chosen = single[::7]
    file = folder / "test.jsonl"
    objects = (json.dumps({"text": text.upper().replace(" ", "  ")}) for text in chosen)
    file.write_text("".join(f"{one}\n" for one in objects), "utf-8")
    letters = set(map(letters_of, chosen))
    return file, {row["text"] for row in rows if letters_of(row["text"]) in letters}


def test_sentences_of_evaluation_files_are_left_out(tables, config, tmp_path):
    file, chosen = evaluation_file(tables, tmp_path)
    prepare(config, tmp_path / "corpus", base=tables)
    plain = link(LinkConfig(heldout_share=0), tables, tmp_path / "corpus")
    assert "exclude" not in plain.settings, "a store from before the setting is up to date"
    settings_ = LinkConfig(heldout_share=0, exclude=(str(file),))
    assert not is_linked(settings_, tables, tmp_path / "corpus")
    manifest = link(settings_, tables, tmp_path / "corpus")
    assert is_linked(settings_, tables, tmp_path / "corpus")

    corpus = Corpus.open(tmp_path / "corpus")
    decode = open_tokenizer(corpus.tokenizer_folder).decode
    rows = pq.read_table(tables / "wikipedia/sw/sentences-00000.parquet").to_pylist()
    links = sum(len(row["links"]) for row in rows if row["text"] in chosen)
    assert links > 0
    assert manifest.dropped["mentions/sw"][EXCLUDED] == links
    assert sum(manifest.counts["sw"].mentions.values()) + links == sum(
        plain.counts["sw"].mentions.values()
    )
    sentences = corpus.knowledge.sentences("sw", "train")
    left = {decode(sentences.tokens("tokens", n).tolist()).strip() for n in range(len(sentences))}
    assert not left & chosen
    # a description is the page's other sentences, joined as extraction joins them
    numbers = {int(item): n for n, item in enumerate(corpus.knowledge.entities["item"])}
    by_page: dict[int, list[str]] = {}
    for row in rows:
        if row["text"] not in chosen:
            by_page.setdefault(row["page"], []).append(row["text"])
    changed = 0
    for page, texts in by_page.items():
        tokens = corpus.knowledge.descriptions("sw")[numbers[page]]
        assert tokens is not None
        wanted = join_opening(texts)
        if len(tokens) < 256:
            assert decode(tokens.tolist()).strip() == wanted
            changed += page in {row["page"] for row in rows if row["text"] in chosen}
    assert changed > 5


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_leaving_out_sentences_is_joining_the_others(data):
    sentences = data.draw(
        st.lists(st.text("abc ", min_size=1, max_size=8), min_size=1, max_size=6, unique=True)
    )
    # no sentence is inside of another one, and none ends in spaces
    sentences = [f"{number} {text.strip()} {number}." for number, text in enumerate(sentences)]
    kept = data.draw(st.lists(st.booleans(), min_size=len(sentences), max_size=len(sentences)))
    some = [text for text, keep in zip(sentences, kept, strict=True) if keep]
    others = [text for text, keep in zip(sentences, kept, strict=True) if not keep]
    wanted = " ".join(" ".join(some).split())
    assert " ".join(leave_out(" ".join(sentences), others).split()) == wanted
    assert leave_out(sentences[0][:4], [sentences[0]]) == "", "a first sentence that was cut"


def test_prepare_links_the_knowledge_that_it_names(tables, config, tmp_path):
    file, _ = evaluation_file(tables, tmp_path)
    with_ = replace(
        config,
        exclude=(str(file),),
        knowledge=KnowledgeSource(tables=".", heldout_share=0.05, languages=("sw", "en")),
    )
    (tmp_path / "prepare.yaml").write_text(dump(with_), "utf-8")
    assert load_prepare(tmp_path / "prepare.yaml") == with_
    out = tmp_path / "corpus"
    manifest = prepare(with_, out, base=tables)
    assert "knowledge" not in manifest.settings
    corpus = Corpus.open(out)
    store = corpus.knowledge
    assert store.manifest.triples["heldout"] > 0
    assert store.manifest.dropped["mentions/sw"][EXCLUDED] > 0, "the corpus's exclude serves both"
    assert is_prepared(with_, out, base=tables)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    prepare(with_, out, base=tables)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before

    changed = replace(with_, knowledge=KnowledgeSource(tables=".", heldout_share=0.01))
    assert not is_prepared(changed, out, base=tables)
    prepare(changed, out, base=tables)
    assert Corpus.open(out).fingerprint == corpus.fingerprint, "text is not prepared again"
    assert Corpus.open(out).knowledge.fingerprint != store.fingerprint

    # another vocabulary: the same mentions, in other tokens
    other = replace(with_, tokenizer=TokenizerConfig(vocab_size=500))
    prepare(other, out, base=tables, overwrite=True)
    again = Corpus.open(out).knowledge
    assert again.manifest.tokenizer != store.manifest.tokenizer
    assert np.array_equal(
        again.mentions("sw", "train")["entity"], store.mentions("sw", "train")["entity"]
    )


def test_tables_that_are_not_there_are_said_before_any_work(config, tables, tmp_path):
    wrong = replace(config, knowledge=KnowledgeSource(tables="nowhere"))
    with pytest.raises(CorpusError, match=r"nowhere: holds no tables of dumps"):
        prepare(wrong, tmp_path / "corpus", base=tables)
    assert not (tmp_path / "corpus").exists()
    told = replace(config, knowledge=KnowledgeSource(tables=".", heldout_share=0.5))
    with pytest.raises(CorpusError, match="would hold out facts that are told"):
        prepare(told, tmp_path / "corpus", base=tables)
