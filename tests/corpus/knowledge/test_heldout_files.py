"""Held-out mentions and facts as task files: queries in one language, candidates in another."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.knowledge.heldout_files import write_heldout_files
from isoglot.corpus.knowledge.store_writer import KnowledgeWriter
from isoglot.errors import CorpusError


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture
def numbers(knowing):
    items = knowing.knowledge.entities["item"].tolist()
    return {f"Q{item}": number for number, item in enumerate(items)}


def test_mentions_are_in_one_language_and_described_in_the_other(knowing, numbers, tmp_path):
    counts = write_heldout_files(knowing, tmp_path, max_examples=4, candidates=5)
    assert set(counts["entity-linking"]) == {"aa-bb", "aa-cc", "bb-aa", "bb-cc", "cc-aa", "cc-bb"}
    assert max(counts["entity-linking"].values()) == 4
    rows = read(tmp_path / "entity-linking/bb-aa.jsonl")
    assert sum("text" in row for row in rows) == counts["entity-linking"]["bb-aa"]
    assert len({row["entity"] for row in rows}) >= 5
    for row in rows:
        assert "aa" in knowing.knowledge.languages_of(numbers[row["entity"]])
        if "text" in row:
            name = row["text"][row["start"] : row["end"]]
            assert name
            assert name == name.strip()


def test_names_are_those_of_the_store(knowing, numbers, tmp_path):
    """All held-out mentions, each with its entity."""
    from isoglot.corpus.tokenization.vocabulary import open_tokenizer

    write_heldout_files(knowing, tmp_path, max_examples=10_000, candidates=1)
    decode = open_tokenizer(knowing.tokenizer_folder).decode
    knowledge = knowing.knowledge
    table, sentences = knowledge.mentions("aa", "heldout"), knowledge.sentences("aa", "heldout")
    expected = []
    for row in range(len(table)):
        if "bb" in knowledge.languages_of(int(table["entity"][row])):
            sentence = int(table["sentence"][row])
            page = np.flatnonzero(sentences["page"] == sentences["page"][sentence]).tolist()
            context = [sentences.tokens("tokens", one).tolist() for one in page]
            ids = context[page.index(sentence)]
            name = decode(ids[table["start"][row] : table["end"][row]]).strip()
            expected.append(
                (
                    decode([token for one in context for token in one]),
                    name,
                    int(table["entity"][row]),
                )
            )
    found = [
        (row["text"], row["text"][row["start"] : row["end"]], numbers[row["entity"]])
        for row in read(tmp_path / "entity-linking/aa-bb.jsonl")
        if "text" in row
    ]
    assert found == expected


def test_facts_name_their_relation_and_other_objects(knowing, numbers, tmp_path):
    write_heldout_files(knowing, tmp_path)
    knowledge = knowing.knowledge
    table = knowledge.triples("heldout")
    columns = [table[name].tolist() for name in ("subject", "relation", "object")]
    triples = list(zip(*columns, strict=True))
    facts = [row for row in read(tmp_path / "object-entailment/aa-bb.jsonl") if "text" in row]
    assert facts
    for fact in facts:
        known = {numbers[name] for name in (*fact["also"], fact["entity"])}
        assert any(
            thing == numbers[fact["entity"]]
            and known == set(knowledge.objects(subject, relation).tolist())
            and knowledge.relations["relation"][relation] == fact["relation"]
            for subject, relation, thing in triples
        )


def test_a_store_that_holds_out_nothing_is_refused(corpus, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(corpus.folder, folder)
    writer = KnowledgeWriter(
        folder / "knowledge", tokenizer=corpus.manifest.tokenizer.fingerprint, settings={}
    )
    writer.entities([pa.table({"item": [1], "label": ["x"]})])
    for language in ("aa", "bb"):
        writer.descriptions(language, [pa.table({"entity": [0], "tokens": [[5]]})])
    writer.finish()
    with pytest.raises(CorpusError, match="holds out no mention"):
        write_heldout_files(Corpus.open(folder), tmp_path / "out")
