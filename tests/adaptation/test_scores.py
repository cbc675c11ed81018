"""Scores of one model by example, against transformers run sentence by sentence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from isoglot.adaptation.scores import (
    HeldoutData,
    ModelScores,
    gold_alignments,
    score_model,
    score_vectors,
)
from isoglot.errors import CorpusError
from isoglot.evaluation.bits_per_character import code_lengths
from isoglot.evaluation.loading import load_for_scoring
from isoglot.intervals import unpack_rows
from isoglot.models.sentence_export import SentenceHead, export_sentence_transformers
from tests.tiny_corpus import words

FIRST = [f"{a} {b}." for a, b in zip(words("aa")[:12], words("aa")[20:32], strict=True)]
SECOND = [f"{a} {b}." for a, b in zip(words("bb")[:12], words("bb")[20:32], strict=True)]


@pytest.fixture
def heldout(tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "pairs").mkdir()
    (tmp_path / "text/aa.txt").write_text("\n".join([*FIRST, "", "  "]), "utf-8")
    rows = [f"{a}\t{b}" for a, b in zip(FIRST, SECOND, strict=True)]
    (tmp_path / "pairs/aa-bb.tsv").write_text("\n".join(rows), "utf-8")
    return tmp_path


@pytest.fixture
def scores(heldout, random_model) -> ModelScores:
    return score_model(random_model, HeldoutData.read(heldout), report=lambda *_: None)


def vectors(model, texts, layer):
    """Pooled states of each text by itself, in float64."""
    tokenizer, found = AutoTokenizer.from_pretrained(model), []
    encoder = AutoModel.from_pretrained(model).double().eval()
    for text in texts:
        with torch.no_grad():
            output = encoder(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        states = output.hidden_states[layer][0]
        found.append(states.mean(dim=0))
    return torch.nn.functional.normalize(torch.stack(found), dim=-1)


def expected(model, layer):
    """(2, pairs) whether the nearest sentence is the translation, both ways."""
    similar = vectors(model, FIRST, layer) @ vectors(model, SECOND, layer).T
    own = torch.arange(len(FIRST))
    return np.stack([(similar.argmax(1) == own).numpy(), (similar.argmax(0) == own).numpy()])


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_retrieval_of_every_layer_both_ways(scores, random_model, layer):
    found = unpack_rows(scores.retrieval["aa-bb"][layer])
    assert (found == expected(random_model, layer)).all()


def test_without_a_folder_for_sentences_their_vectors_are_the_mean_of_the_last_layer(scores):
    assert scores.vectors == {"aa-bb": scores.retrieval["aa-bb"][2]}


def test_tokens_per_word_and_bits_of_each_line(scores, random_model):
    tokenizer = AutoTokenizer.from_pretrained(random_model)
    lengths = [len(tokenizer(line, add_special_tokens=False)["input_ids"]) for line in FIRST]
    assert scores.tokens["aa"].numerators.tolist() == lengths
    assert scores.tokens["aa"].denominators.tolist() == [2.0] * len(FIRST)
    found = code_lengths(*load_for_scoring(random_model), FIRST, language="aa")
    assert scores.bits["aa"].numerators == pytest.approx(found.bits)
    assert scores.bits["aa"].denominators.tolist() == found.characters.tolist()


def test_a_language_without_text_is_scored_on_its_side_of_the_pairs(heldout, scores):
    data = HeldoutData.read(heldout)
    assert data.lines == {"aa": FIRST, "bb": SECOND}
    assert len(scores.bits["bb"]) == len(SECOND)


def test_the_first_numbers_come_before_anything_slow(heldout, random_model):
    said: list[tuple[str, float]] = []
    data = HeldoutData.read(heldout)
    score_model(random_model, data, report=lambda text, share: said.append((text, share)))
    assert [text.partition(":")[0] for text, _ in said] == ["aa", "bb", "aa-bb", "aa", "bb"]
    assert said[0][0].endswith("tokens per word")
    assert said[-1][0].endswith("bits per character")
    assert [share for _, share in said] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_word_alignments_of_every_layer(heldout, random_model, tmp_path):
    place = tmp_path / "gold/xlm-align/de-en"
    place.mkdir(parents=True)
    for code in ("de", "en"):
        (place / f"test.{code}").write_text("\n".join(FIRST[:6]), "utf-8")
    gold = "\n".join(f"{n} {word} {word} S" for n in range(6) for word in (1, 2))
    (place / "alignv2.txt").write_text(gold, "utf-8")
    data = HeldoutData.read(heldout, gold_alignments([tmp_path / "gold"], ("aa", "bb")))
    found = score_model(random_model, data, report=lambda *_: None)
    layers = found.alignment["de-en"]
    assert len(layers) == 3
    assert layers[0].value == 0, "the same words have the same embeddings"
    assert len(layers[0]) == 6


def test_gold_alignments_are_of_the_languages_of_the_request_if_there_are_any(tmp_path):
    for pair in ("de-en", "en-fr"):
        place = tmp_path / "xlm-align" / pair
        place.mkdir(parents=True)
        for code in pair.split("-"):
            (place / f"test.{code}").write_text("a b\n")
        (place / "alignv2.txt").write_text("1 1 1 S\n")
    own = gold_alignments([tmp_path], ("en", "fr", "sw"))
    assert [split.language for _, split in own] == ["en-fr"]
    others = gold_alignments([tmp_path], ("en", "sw"))
    assert [split.language for _, split in others] == ["de-en", "en-fr"]


def test_a_folder_without_gold_alignments_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"empty has no gold word alignments.*docs/tasks\.md"):
        gold_alignments([tmp_path / "empty"], ("de", "en"))


def test_an_encoder_without_an_lm_head_has_no_bits(heldout, random_model, tmp_path):
    AutoModel.from_pretrained(random_model).save_pretrained(tmp_path / "headless")
    AutoTokenizer.from_pretrained(random_model).save_pretrained(tmp_path / "headless")
    assert AutoModelForMaskedLM.from_pretrained(random_model) is not None
    said: list[str] = []
    data = HeldoutData.read(heldout)
    found = score_model(tmp_path / "headless", data, report=lambda text, _: said.append(text))
    assert found.bits == {}
    assert found.retrieval
    assert said[-1] == "bb: no bits per character, the encoder has no LM head"


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_vectors_of_a_sentence_transformers_folder(heldout, random_model, tmp_path, pooling):
    """As sentence-transformers itself computes them."""
    export_sentence_transformers(
        random_model, tmp_path / "sentences", SentenceHead(pooling=pooling), max_length=64
    )
    found = score_vectors(tmp_path / "sentences", HeldoutData.read(heldout).pairs)
    model = SentenceTransformer(str(tmp_path / "sentences"), device="cpu")
    similar = model.similarity(model.encode(FIRST), model.encode(SECOND))
    own = torch.arange(len(FIRST))
    expected = np.stack([(similar.argmax(1) == own), (similar.argmax(0) == own)])
    assert (unpack_rows(found["aa-bb"]) == expected).all()
