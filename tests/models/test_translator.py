"""Lines of text through an exported encoder-decoder."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError
from isoglot.models import translator
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.seq2seq_export import export_seq2seq
from isoglot.models.translator import Translator
from tests.models.tiny_seq2seq import (
    RELEASED,
    SETTINGS,
    build_seq2seq,
    export_to,
)


@pytest.fixture(scope="module")
def folder(corpus, tmp_path_factory):
    """An exported encoder-decoder."""
    folder = tmp_path_factory.mktemp("seq2seq") / "model"
    export_to(build_seq2seq(corpus), folder, corpus)
    return folder


def test_an_encoder_does_not_translate(corpus, tmp_path):
    encoder = Encoder.build(replace(SETTINGS, decoder=None), corpus.vocabulary)
    export_encoder(encoder, tmp_path / "mlm", tokenizer_folder=corpus.tokenizer_folder, card="")
    with pytest.raises(ModelError, match="cannot translate"):
        Translator.open(tmp_path / "mlm")


def test_a_damaged_folder_is_named(folder, tmp_path):
    folder = shutil.copytree(folder, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights.pop("decoder.roberta.encoder.layer.0.crossattention.self.query.weight")
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"lacks weights .*crossattention\.self\.query"):
        Translator.open(folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="is not a readable safetensors file"):
        Translator.open(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match="is not readable JSON"):
        Translator.open(folder)


def test_lines_are_divided_into_words_as_the_corpus_was(corpus, tmp_path, monkeypatch):
    tokenizer_folder = tmp_path / "tokenizer"
    shutil.copytree(corpus.tokenizer_folder, tokenizer_folder)
    Pretokenizer({"aa": "moses"}).save(tokenizer_folder)
    (loss,) = export_seq2seq(
        build_seq2seq(corpus),
        tmp_path / "model",
        tokenizer_folder=tokenizer_folder,
        base_tokenizer="",
        card="# card\n",
    )
    assert "split into words" in loss
    assert loss in (tmp_path / "model/README.md").read_text()
    translator = Translator.open(tmp_path / "model", "cpu")
    read = []
    rows = translator._rows

    def heard(texts, language):
        read.append((texts, language))
        return rows(texts, language)

    monkeypatch.setattr(translator, "_rows", heard)
    assert dict(translator.translate(["kalo,mitu.", ""], "aa", "bb"))[1] == ""
    list(translator.translate(["kalo,mitu."], "bb", "aa"))
    expected = translator.tokenizer.tokenizer(
        ["kalo , mitu .", "kalo,mitu."], add_special_tokens=False
    )
    divided, whole = expected["input_ids"]
    assert read == [([divided], 0), ([whole], 1)]
    assert divided != whole
    monkeypatch.setattr(
        translator.tokenizer.tokenizer, "batch_decode", lambda *_, **__: [" kalo , mitu\nsera ."]
    )
    assert dict(translator.translate(["kalo"], "bb", "aa")) == {0: "kalo, mitu sera."}
    assert dict(translator.translate(["kalo"], "aa", "bb")) == {0: "kalo , mitu sera ."}


def test_a_line_that_spells_a_special_token_is_text(corpus, folder):
    translator = Translator.open(folder, "cpu")
    (ids,) = translator._encode(["kalo </s> <bb> <mask>"], "aa", None)
    unknown = translator.tokenizer.tokenizer.unk_token_id
    specials = {*translator.seq2seq.suppress_tokens, corpus.vocabulary.sep} - {unknown}
    assert not specials & set(ids)
    assert list(translator.translate([], "aa", "bb")) == []
    notes: list[str] = []
    (ids,) = translator._encode(["kalo " * 100], "aa", notes.append)
    assert len(ids) == 62
    assert "1 of 1 lines have more than 62 tokens" in notes[0]


def test_lines_that_fit_exactly_are_one_batch():
    lengths = [8, 8, 8, 0, 3]
    edges = translator._NUM_EDGES
    assert list(translator._batches(lengths, 4 * (8 + edges))) == [[0, 1, 2, 4]]
    assert list(translator._batches(lengths, 4 * (8 + edges) - 1)) == [[0, 1, 2], [4]]
    assert list(translator._batches(lengths, 1)) == [[0], [1], [2], [4]]


def test_language_embeddings_are_used_unless_they_are_left_out(corpus, tmp_path):
    seq2seq = build_seq2seq(corpus, RELEASED)
    assert seq2seq.encoder.languages is not None
    torch.nn.init.normal_(seq2seq.encoder.languages.weight)
    export_to(seq2seq, tmp_path / "model", corpus)
    states = []
    for use in (True, False):
        translator = Translator.open(tmp_path / "model", "cpu", with_languages=use)
        has_languages = translator.seq2seq.encoder.languages is not None
        assert has_languages is use
        rows = translator._rows([[5, 6, 7]], 1)
        with torch.no_grad():
            states.append(translator.seq2seq.encoder(rows).hidden)
    with torch.no_grad():
        expected = seq2seq.eval().encoder(rows).hidden
    torch.testing.assert_close(states[0], expected, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(states[0], states[1], atol=1e-3)


def test_a_line_of_20_megabytes_is_cut_before_it_is_tokenized(folder):
    translator = Translator.open(folder, "cpu")
    said: list[str] = []
    begin = time.perf_counter()
    encoded = translator._encode(["ka lo mitu " * 2_000_000, "ka"], "aa", said.append)
    assert time.perf_counter() - begin < 5
    assert len(encoded[0]) == translator.seq2seq.encoder.max_positions - 2
    assert "1 of 2 lines" in said[0]
