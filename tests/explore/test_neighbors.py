"""Neighbors and maps without a browser, against slow and obvious versions."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from isoglot.corpus.tokenization.vocabulary import open_tokenizer
from isoglot.errors import IsoglotError
from isoglot.explore.map import MapDrawer, map_svg
from isoglot.explore.map_points import MapPoints, MapText, choose_texts, layer_vectors, locate
from isoglot.explore.neighbors import NeighborSearch, Question, merge, neighbors_table
from isoglot.explore.sentences import Collection, collections_of, decode_corpus, translations
from isoglot.explore.session import open_session
from isoglot.explore.vector_index import Neighbor, VectorIndex
from tests.explore.conftest import ARABIC, CHINESE, HOSTILE


def silent(stage, done, total):
    pass


def slow_vector(model, text):
    """The unit mean of the last states of a text that is encoded alone, by transformers' rules."""
    ids = torch.tensor([model.tokenizer(text)["input_ids"]])
    output = model.encoder.model.base_model(input_ids=ids)
    return F.normalize(output.last_hidden_state[0].mean(dim=0), dim=-1)


@torch.no_grad()
def test_the_nearest_are_those_of_all_cosines(session):
    model = session.models[0]
    collection = collections_of(session)["corpus"]
    query = session.pairs["aa-bb"][0][3]
    found = VectorIndex().nearest(
        model, collection, ["aa", "cc"], query, k=5, query_language=None, progress=silent
    )
    asked = slow_vector(model, query)
    for code, neighbors in found.items():
        texts = collection.sentences[code][:]
        cosines = [float(slow_vector(model, text) @ asked) for text in texts]
        best = np.argsort(cosines)[::-1][:5]
        assert [one.text for one in neighbors] == [texts[n] for n in best]
        np.testing.assert_allclose(
            [one.cosine for one in neighbors], np.array(cosines)[best], atol=1e-5
        )
        assert {one.language for one in neighbors} == {code}


def test_sentences_of_a_corpus_are_decoded(corpus):
    tokenizer = open_tokenizer(corpus.tokenizer_folder)
    table = corpus.table("text", "bb", "train")
    every = [tokenizer.decode(table.ids("ids", row)) for row in range(table.num_rows)]
    assert decode_corpus(corpus, table.num_rows)["bb"] == every
    few = decode_corpus(corpus, 7)
    assert {len(texts) for texts in few.values()} == {7}
    assert few["bb"][0] == every[0]
    assert few["bb"][-1] == every[-1]


def test_text_is_taken_before_pairs(corpus):
    """Pairs fill up what the text of a language lacks."""
    lines = corpus.table("text", "cc", "train").num_rows
    pairs = corpus.table("pairs", "aa-cc", "train").num_rows
    found = decode_corpus(corpus, 10**6)["cc"]
    assert len(found) == lines + pairs
    assert decode_corpus(corpus, lines)["cc"] == found[:lines]


def test_sentences_of_a_collection_are_different_and_not_blank(session):
    given = replace(session, text_files={"xx": None}, pairs_files=(), corpus=None)
    given.__dict__["texts"] = {"xx": [" a", "b ", "", "a", " ", "b"]}
    (found,) = collections_of(given).values()
    assert found.sentences == {"xx": ["a", "b"]}


def test_translations_of_both_sides(session):
    known = translations(session)
    assert known[f"{ARABIC} 2"] == [f"{CHINESE} 2"]
    assert known[f"{CHINESE} 2"] == [f"{ARABIC} 2"]


def test_lists_together_and_by_language(session):
    search = NeighborSearch(session)
    asked = f"{ARABIC} 4"
    question = Question(text=asked, collection="pairs", languages=("ar", "zh"), number=3)
    together = search.answer(session.models[0], question, silent)
    assert together.count("<table") == 1
    assert together.count("<tr>") == 1 + 3
    apart = search.answer(session.models[0], replace(question, together=False), silent)
    assert apart.count("<table") == 2
    assert apart.count("<tr>") == 2 * (1 + 3)
    whole = search.answer(session.models[0], replace(question, number=50), silent)
    assert whole.count("ig-mark") == 1  # the translation


@pytest.mark.parametrize(
    ("text", "languages", "said"),
    [(" ", ("ar",), "Type a sentence"), ("a", (), "Choose at least one language")],
)
def test_a_question_without_text_or_language_is_refused(session, text, languages, said):
    search = NeighborSearch(session)
    question = Question(text=text, collection="pairs", languages=languages)
    with pytest.raises(IsoglotError, match=said):
        search.answer(session.models[0], question, silent)


def test_merged_lists_are_sorted():
    found = {
        "a": [Neighbor(0.9, "a", "x"), Neighbor(0.2, "a", "y")],
        "b": [Neighbor(0.95, "b", "z"), Neighbor(0.5, "b", "w")],
    }
    assert [one.text for one in merge(found, 3)] == ["z", "x", "w"]


def test_sentences_in_a_table_are_text():
    html = neighbors_table([Neighbor(0.5, HOSTILE, HOSTILE)], [], label=HOSTILE)
    assert "<script" not in html
    assert "<img" not in html


def test_vectors_in_a_folder_are_read_again(session, tmp_path, monkeypatch):
    model, collection = session.models[0], collections_of(session)["pairs"]
    plain = VectorIndex().get(model, collection, "zh", silent)
    kept = VectorIndex(tmp_path / "vectors").get(model, collection, "zh", silent)
    assert torch.equal(plain, kept)
    monkeypatch.setattr(model.sentence_encoder, "encode", None)  # it would fail
    assert torch.equal(
        VectorIndex(tmp_path / "vectors").get(model, collection, "zh", silent), plain
    )


def test_progress_is_told_once_and_vectors_are_kept(session):
    heard = []
    index, collection = VectorIndex(), collections_of(session)["pairs"]
    for _ in range(2):
        index.get(session.models[0], collection, "ar", lambda *news: heard.append(news))
    assert heard == [("first: vectors of pairs ar", 0, 8), ("first: vectors of pairs ar", 8, 8)]


def test_a_map_has_both_sides_of_translations(session):
    texts = choose_texts(session, "pairs", ["ar", "zh"], 5)
    assert [one.language for one in texts] == ["ar"] * 5 + ["zh"] * 5
    known = translations(session)
    for one in texts:
        (other,) = [two for two in texts if two.pair == one.pair and two is not one]
        assert known[one.text] == [other.text]
    with pytest.raises(IsoglotError, match="make no map"):
        choose_texts(session, "pairs", ["ar", "aa"], 5)


def test_vectors_of_layers(session):
    model = session.models[0]
    texts = choose_texts(session, "words", ["aa", "bb"], 4)
    vectors = layer_vectors(model, texts, are_words=True)
    assert len(vectors) == model.num_layers + 1
    table = model.encoder.model.get_input_embeddings().weight
    for place, one in enumerate(texts):
        ids = model.tokenizer(one.text, add_special_tokens=False)["input_ids"]
        torch.testing.assert_close(vectors[0][place], table[ids].mean(dim=0))


def test_places_and_accuracy():
    """Two clusters stay apart, and accuracy counts both directions."""
    rng = np.random.default_rng(0)
    base = torch.tensor(rng.normal(size=(6, 8)), dtype=torch.float32)
    texts = [MapText("a", f"a{n}", n) for n in range(6)] + [
        MapText("b", f"b{n}", n) for n in range(6)
    ]
    near = locate(texts, torch.cat([base, base + 1e-3]), 1, are_words=False)
    assert near.accuracy == 1.0
    assert len(near.places) == 12
    turned = locate(texts, torch.cat([base, base.roll(1, dims=0)]), 1, are_words=False)
    assert turned.accuracy == 0.0
    half = torch.cat([base, torch.cat([base[:3], base[3:].roll(1, dims=0)])])
    assert locate(texts, half, 1, are_words=False).accuracy == 0.5


def test_the_drawing_of_a_map():
    texts = [MapText("a", HOSTILE, 0), MapText("b", "x" * 100_000, 0), MapText("b", "alone", None)]
    points = MapPoints(((0.0, 0.0), (10.0, 5.0), (5.0, 5.0)), "t-SNE", None)
    svg = map_svg(texts, points, ["a", "b"], join=True)
    assert len(svg) < 3000
    assert "<script" not in svg
    circles = re.findall(r'cx="(\d+)" cy="(\d+)"', svg)
    assert [tuple(map(int, place)) for place in circles] == [(30, 265), (970, 735), (500, 735)]
    assert 'd="M30 265L970 735"' in svg
    assert "<path" not in map_svg(texts, points, ["a", "b"], join=False)


def test_maps_are_kept(session, monkeypatch):
    drawer = MapDrawer(session)
    model = session.models[0]
    first = drawer.draw(model, "pairs", ["ar", "zh"], number=5, layer=9)
    assert "layer 2 of 2" in first  # the highest
    monkeypatch.setattr("isoglot.explore.map.locate", None)  # it would fail
    assert drawer.draw(model, "pairs", ["ar", "zh"], number=5, layer=2) == first


@pytest.mark.parametrize(
    ("names", "options", "said"),
    [
        ([], {}, "at least one model"),
        (["a={0}", "a={0}"], {}, "called 'a'"),
        (["{0}"], {"device": "tpu"}, "neither cpu nor cuda"),
        (["{0}"], {"pairs": ["missing.tsv"]}, "missing.tsv"),
        (["{0}"], {"recipe": "no-such"}, "no-such"),
        (["{0}/nowhere"], {}, "nowhere"),
    ],
)
def test_what_cannot_be_opened_is_a_sentence(models, names, options, said):
    with pytest.raises(IsoglotError, match=said):
        open_session([name.format(models[0]) for name in names], **options)


def test_the_languages_of_a_file_of_pairs_may_stand_before_it(models, tmp_path):
    file = tmp_path / "dev.tsv"
    file.write_text("cat\tpaka\n", "utf-8")
    assert open_session([models[0]], pairs=[f"en-sw={file}"]).pairs == {
        "en-sw": (["cat"], ["paka"])
    }
    with pytest.raises(IsoglotError, match=r"did you mean 'dev.tsv'\?"):
        open_session([models[0]], pairs=[f"en-sw={tmp_path}/def.tsv"])


def test_a_dictionary_with_tabs_or_spaces(models, tmp_path):
    file = tmp_path / "en-sw.0-5000.txt"
    file.write_text("cat\tpaka\nbig dog\tmbwa\nhouse nyumba\nthree word line\n\n", "utf-8")
    session = open_session([models[0]], dictionaries=[file])
    assert session.words == {"en-sw": (["cat", "big dog", "house"], ["paka", "mbwa", "nyumba"])}
    file.write_text("one\n", "utf-8")
    with pytest.raises(IsoglotError, match="has no line of a word"):
        _ = open_session([models[0]], dictionaries=[file]).words


@pytest.mark.slow
def test_100_000_sentences_are_answered_in_200_ms(session):
    """In CPU time of one thread, which other processes change little."""
    search = NeighborSearch(session)
    width = len(session.models[0].sentence_encoder.encode(["a"])[0])
    wide = torch.nn.Linear(width, 768)
    model = session.models[0]
    collection = Collection("many", ("aa", "bb"), dict)
    texts = {code: [f"{code} {n}" for n in range(50_000)] for code in ("aa", "bb")}
    collection.__dict__["sentences"] = texts
    search.collections["many"] = collection
    encode = model.sentence_encoder.encode
    for code in texts:
        vectors = F.normalize(torch.randn(50_000, 768), dim=-1)
        search.index.vectors[model.name, "many", code] = vectors
    model.sentence_encoder.encode = lambda *given: wide(encode(*given))
    question = Question(text="a", collection="many", languages=("aa", "bb"))
    seconds = []
    try:
        for _ in range(5):
            began = time.process_time()
            with torch.no_grad():
                answer = search.answer(model, question, silent)
            seconds.append(time.process_time() - began)
    finally:
        del model.sentence_encoder.encode
    assert answer.count("<tr>") == 11
    assert min(seconds) < 0.2
