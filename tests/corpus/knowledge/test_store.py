"""The knowledge store: what is written is what is read, and nothing broken is."""

import pickle
import shutil

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus import Corpus
from isoglot.corpus.knowledge.link.tokenize import token_span
from isoglot.corpus.knowledge.store import FOLDER, MANIFEST, Knowledge
from isoglot.corpus.knowledge.store_writer import KnowledgeWriter, are_held_out
from isoglot.errors import CorpusError
from tests.tiny_knowledge import DESCRIBED, ENTITIES, write_store


def writer_in(folder):
    return KnowledgeWriter(folder, tokenizer="t", settings={})


def entities(number):
    return [pa.table({"item": range(10, 10 + number), "label": ["é" * n for n in range(number)]})]


tables = st.dictionaries(
    st.sampled_from(["aa", "bb", "cc"]),
    st.dictionaries(
        st.integers(0, 19), st.lists(st.integers(0, 9), min_size=1, max_size=5), max_size=20
    ),
)


@given(tables, st.integers(1, 7))
@settings(max_examples=15, deadline=None)
def test_every_description_is_found_again(tmp_path_factory, descriptions, chunk):
    """Whatever the size of the batches they are written in, also where these are slices."""
    folder = tmp_path_factory.mktemp("store") / FOLDER
    writer = writer_in(folder)
    writer.entities(entities(20))
    for language, texts in descriptions.items():
        order = sorted(texts)
        table = pa.table(
            {
                "tokens": pa.array([texts[n] for n in order], pa.list_(pa.int64())),
                "entity": pa.array(order, pa.int64()),
            }
        )
        writer.descriptions(language, [table.slice(i, chunk) for i in range(0, 20, chunk)])
    about = writer.finish()
    knowledge = pickle.loads(pickle.dumps(Knowledge.open(folder, tokenizer="t")))
    assert knowledge.languages == tuple(sorted(descriptions)) == about.languages
    for entity in range(20):
        known = tuple(c for c in sorted(descriptions) if entity in descriptions[c])
        assert knowledge.languages_of(entity) == known
        first, number = knowledge.described[np.array([entity])]
        lengths = knowledge.described.where["length"][first[0] : first[0] + number[0]]
        assert lengths.tolist() == [len(descriptions[code][entity]) for code in known]
        for code in descriptions:
            found = knowledge.descriptions(code)[entity]
            wanted = descriptions[code].get(entity)
            assert (None if found is None else found.tolist()) == wanted
    assert [knowledge.label(n) for n in range(20)] == ["é" * n for n in range(20)]
    assert knowledge.entities["item"].tolist() == list(range(10, 30))


def test_a_store_says_what_it_holds(knowing):
    knowledge = knowing.knowledge
    about = knowledge.manifest
    assert about.entities == ENTITIES
    assert about.dropped == {"mentions/aa": {"red link": 2}}
    for language, described in DESCRIBED.items():
        counts = about.counts[language]
        assert counts.descriptions == len(described)
        assert counts.description_tokens == sum(
            len(knowledge.descriptions(language)[entity]) for entity in described
        )
        assert counts.mentions["train"] == len(knowledge.mentions(language, "train"))
    subject, relation = (
        int(knowledge.triples("train")[name][0]) for name in ("subject", "relation")
    )
    naive = [
        int(table["object"][row])
        for table in (knowledge.triples("train"), knowledge.triples("heldout"))
        for row in range(len(table))
        if (table["subject"][row], table["relation"][row]) == (subject, relation)
    ]
    assert knowledge.objects(subject, relation).tolist() == sorted(naive)
    assert knowledge.objects(11, 0).tolist() == []
    with pytest.raises(CorpusError, match="has nothing in 'dd'"):
        knowledge.descriptions("dd")


@pytest.mark.parametrize(
    ("write", "fault"),
    [
        (lambda w: w.entities([pa.table({"item": [2, 1], "label": ["", ""]})]), r"\[2\] comes bef"),
        (lambda w: w.descriptions("aa", [_described([1, 1])]), "not sorted by entity, or one is"),
        (
            lambda w: w.descriptions("aa", [_described([1]), _described([0])]),
            "not sorted by entity",
        ),
        (lambda w: w.descriptions("aa", [_described([0], [[]])]), "from 1 to 256 tokens"),
        (lambda w: w.descriptions("aa", [_described([0], [[1] * 257])]), "from 1 to 256 tokens"),
        (lambda w: w.descriptions("aa", [_described([7])]), "entity 7 of row 0 is not in entities"),
        (lambda w: w.triples("train", [_triple(0, 0, 9)]), "object 9 of row 0 is not in entities"),
        (lambda w: w.triples("train", [_triple(0, 1, 2)]), "relation 1 of row 0 is not in relat"),
        (lambda w: w.mentions("aa", "train", [_mention(0, 0, 1)]), "sentence 0 of row 0 is not in"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, write, fault):

    def whole_store():
        writer = writer_in(tmp_path / FOLDER)
        write(writer)
        if "entities.arrow" not in writer._tables:
            writer.entities(entities(3))
        writer.relations([pa.table({"relation": [31], "label": ["is"], "count": [1]})])
        writer.finish()

    with pytest.raises(CorpusError, match=fault):
        whole_store()
    assert not (tmp_path / FOLDER / MANIFEST).exists()
    assert not list((tmp_path / FOLDER).rglob("*.partial")), "nothing half-written is left"


@pytest.mark.parametrize(("start", "end"), [(1, 1), (-1, 1), (0, 4)])
def test_a_span_lies_inside_its_sentence(tmp_path, start, end):
    writer = writer_in(tmp_path / FOLDER)
    writer.entities(entities(3))
    writer.sentences("aa", "train", [pa.table({"page": [4], "tokens": [[1, 2, 3]]})])
    writer.mentions("aa", "train", [_mention(0, start, end)])
    with pytest.raises(CorpusError, match="the span of row 0 is not inside its sentence"):
        writer.finish()


def _described(numbers, tokens=None):
    return pa.table({"entity": numbers, "tokens": tokens or [[1]] * len(numbers)})


def _mention(sentence, start, end):
    return pa.table({"sentence": [sentence], "start": [start], "end": [end], "entity": [0]})


def _triple(subject, relation, thing):
    return pa.table({"subject": [subject], "relation": [relation], "object": [thing]})


@pytest.fixture
def copied(knowing, tmp_path):
    shutil.copytree(knowing.folder, tmp_path / "corpus")
    return tmp_path / "corpus"


def test_damage_is_noticed(copied):
    store = copied / FOLDER
    table = store / "descriptions/aa.arrow"
    data = table.read_bytes()
    table.write_bytes(data[:-9] + b"x" + data[-8:])
    with pytest.raises(CorpusError, match="its content differs from what was written"):
        Knowledge.open(store)
    table.write_bytes(data[:-1])
    with pytest.raises(CorpusError, match=r"is damaged: it has .* bytes and not"):
        Knowledge.open(store, verify="never")
    table.unlink()
    with pytest.raises(CorpusError, match=r"aa\.arrow: is missing"):
        Knowledge.open(store)
    (store / MANIFEST).write_text("{}")
    with pytest.raises(CorpusError, match="knowledge link"):
        Knowledge.open(store)


def test_another_tokenizer_or_no_store_is_refused(copied, corpus):
    with pytest.raises(CorpusError, match="with another tokenizer"):
        Knowledge.open(copied / FOLDER, tokenizer="another")
    with pytest.raises(CorpusError, match=r"holds no knowledge.*Run isoglot knowledge link"):
        _ = corpus.knowledge


def test_a_store_that_is_written_anew_while_in_use_is_noticed(copied):
    sent = pickle.dumps(Corpus.open(copied).knowledge)
    before = Knowledge.open(copied / FOLDER).fingerprint
    write_store(Corpus.open(copied), seed=0)
    assert pickle.loads(sent).fingerprint == before, "the same content is the same store"
    write_store(Corpus.open(copied), seed=1, pages=4)
    with pytest.raises(CorpusError, match="was written anew while it was in use"):
        pickle.loads(sent)


def test_the_held_out_share_is_met_and_decided_by_the_key_alone():
    pages = np.arange(20_000)
    held = are_held_out(pages, share=0.1)
    assert held.mean() == pytest.approx(0.1, abs=0.01)
    order = np.random.default_rng(0).permutation(pages)
    assert np.array_equal(are_held_out(order, share=0.1), held[order])
    assert not are_held_out(pages, share=0.0).any()
    pairs = are_held_out(pages, pages[::-1].copy(), share=0.1)
    assert 0 < (pairs != held).mean() < 0.3


def test_tokens_that_touch_a_name_belong_to_it():
    offsets = [(0, 3), (3, 5), (5, 5), (5, 9), (9, 10)]
    assert token_span(offsets, 3, 5) == (1, 2)
    assert token_span(offsets, 4, 6) == (1, 4)
    assert token_span(offsets, 9, 10) == (4, 5)
    assert token_span(offsets, 10, 12) is None
