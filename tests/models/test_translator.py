"""Lines of text through an exported encoder-decoder."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from safetensors.torch import load_file, save_file

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.seq2seq_export import export_seq2seq
from isoglot.models.translator import Translator
from tests.models.tiny_seq2seq import (
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
    with pytest.raises(ModelError, match="cannot be loaded as an encoder-decoder"):
        Translator.open(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be loaded"):
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
