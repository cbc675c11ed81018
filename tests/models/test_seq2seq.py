"""Encoder-decoders: where they start, who sees what, and the plain folder they leave."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from isoglot.batching.builder import Canvas
from isoglot.corpus.pretokenize import Pretokenization
from isoglot.errors import ModelError
from isoglot.models import DecoderConfig, Encoder, ModelConfig, Seq2Seq, export, export_seq2seq
from isoglot.models.translator import Translator
from isoglot.models.writing import WritingConfig
from isoglot.objectives.sides import source, target
from isoglot.types import Decoding

SETTINGS = ModelConfig(
    size="tiny",
    layers=2,
    hidden=32,
    heads=2,
    max_positions=64,
    dropout=0.0,
    decoder=DecoderConfig(),
)
RELEASED = replace(SETTINGS, languages="all", decoder=DecoderConfig(cross_output="language"))
TEXTS = ["kalo mitu sera.", "nope.", "tu tu lo ra."]


def built(corpus, settings=SETTINGS, seed=0):
    torch.manual_seed(seed)
    found = Seq2Seq.build(settings, corpus.vocabulary, languages=corpus.languages).eval()
    with torch.no_grad():
        for weight in found.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return found


def written(found, folder, corpus):
    return export_seq2seq(
        found,
        folder,
        tokenizer_folder=corpus.tokenizer_folder,
        base_tokenizer="of the corpus",
        card="",
    )


def rows_of(*sequences):
    canvas = Canvas(len(sequences), max(map(len, sequences)), 1)
    for row, sequence in enumerate(sequences):
        canvas.put(sequence, row, 0)
    return canvas.rows()


def example(corpus, read=(10, 11, 12, 13, 14), write=(20, 21, 22)):
    vocabulary = corpus.vocabulary
    reads = rows_of(source(np.array(read, np.int32), 0, vocabulary))
    writes = rows_of(target(np.array(write, np.int32), 1, vocabulary))
    none = torch.zeros(0, dtype=torch.int64)
    decoding = Decoding(
        rows=writes,
        sources=torch.zeros(1, dtype=torch.int64),
        positions=none,
        targets=none,
        spans={},
    )
    return reads, decoding


def test_half_of_the_layers_are_the_decoders(corpus):
    found = Seq2Seq.build(
        ModelConfig(size="small", hidden=32, heads=2, decoder=DecoderConfig()),
        corpus.vocabulary,
        languages=corpus.languages,
    )
    assert len(found.model.encoder.encoder.layer) == 3
    assert len(found.model.decoder.roberta.encoder.layer) == 3
    assert found.encoder.vocabulary_size == corpus.vocabulary.size + 3


def test_the_decoder_cannot_look_at_what_is_not_visible(corpus):
    found = built(corpus)
    reads, decoding = example(corpus)
    states = torch.randn(1, 7, 32, requires_grad=True)
    visible = torch.ones(1, 7, dtype=torch.bool)
    visible[0, 2:4] = False
    found.decode(decoding, states, visible).square().sum().backward()
    assert states.grad is not None
    moved = states.grad.abs().sum(dim=-1)[0]
    assert (moved[2:4] == 0).all()
    assert (moved[[0, 1, 4, 5, 6]] > 0).all()
    assert (reads.sequences == 0).all()


def test_the_decoder_sees_no_later_token_and_heeds_positions(corpus):
    found = built(corpus)
    reads, decoding = example(corpus)
    visible = torch.ones(1, 7, dtype=torch.bool)
    with torch.no_grad():
        states = found.encoder(reads).hidden
        usual = found.decode(decoding, states, visible)
        decoding.rows.ids[0, 2] = 30
        later = found.decode(decoding, states, visible)
        decoding.rows.positions[0, 1:] += 5
        moved = found.decode(decoding, states, visible)
    assert usual[0, :2].equal(later[0, :2])
    assert not usual[0, 2].allclose(later[0, 2])
    assert not later[0, 1].allclose(moved[0, 1])


@pytest.mark.parametrize("share", [True, False])
def test_the_folder_is_plain_and_writes_the_same(corpus, tmp_path, share):
    found = built(corpus, replace(SETTINGS, decoder=DecoderConfig(share_embeddings=share)))
    assert written(found, tmp_path / "model", corpus) == []
    model, said = AutoModelForSeq2SeqLM.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not said["missing_keys"]
    assert not said["unexpected_keys"]
    for half in (model.config.encoder, model.config.decoder):
        assert half.attention_probs_dropout_prob == 0.1, "as it was before it was switched off"
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    inputs = tokenizer([f"<aa>{text}" for text in TEXTS], return_tensors="pt", padding=True)
    assert tokenizer.convert_ids_to_tokens(inputs.input_ids[1].tolist())[0] == "<aa>"
    ids = model.eval().generate(
        input_ids=inputs.input_ids,
        attention_mask=inputs.attention_mask,
        decoder_start_token_id=tokenizer.convert_tokens_to_ids("<bb>"),
        suppress_tokens=found.never,
        max_length=12,
    )
    plain = [text.strip() for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]
    translator = Translator.open(tmp_path / "model", "cpu")
    settings = WritingConfig(longer_by=0, more=11)
    ours = dict(translator.translate(TEXTS, "aa", "bb", settings))
    assert [ours[number] for number in range(3)] == plain
    weights = translator.seq2seq.model.state_dict()
    assert all(weights[name].equal(weight) for name, weight in model.state_dict().items())


def test_languages_are_taken_over_by_code(corpus, tmp_path):
    written(built(corpus), tmp_path / "model", corpus)
    first = Translator.open(tmp_path / "model", "cpu").seq2seq
    again = Seq2Seq.build(
        replace(SETTINGS, size=None, start=str(tmp_path / "model")),
        corpus.vocabulary,
        languages=("cc", "dd", "aa"),
    )
    mine, theirs = (one.model.encoder.embeddings.word_embeddings.weight for one in (again, first))
    size = corpus.vocabulary.size
    assert mine[:size].equal(theirs[:size])
    assert mine[size].equal(theirs[size + 2])
    assert mine[size + 1].equal(theirs[corpus.vocabulary.cls]), "a new one begins as <s>"
    assert mine[size + 2].equal(theirs[size])
    assert again.model.decoder.lm_head is again.encoder.model.lm_head


def test_two_tables_of_words_do_not_become_one(corpus, tmp_path):
    apart = replace(SETTINGS, decoder=DecoderConfig(share_embeddings=False))
    found = built(corpus, apart)
    written(found, tmp_path / "model", corpus)
    again = replace(apart, size=None, start=str(tmp_path / "model"))
    one_table = replace(again, decoder=DecoderConfig())
    with pytest.raises(ModelError, match="share_embeddings to false"):
        Seq2Seq.build(one_table, corpus.vocabulary, languages=corpus.languages)
    opened = Seq2Seq.build(again, corpus.vocabulary, languages=corpus.languages)
    for mine, theirs in zip(opened._tables(), found._tables(), strict=True):
        assert mine.equal(theirs)


def test_one_masked_language_model_in_both_halves(corpus, tmp_path):
    torch.manual_seed(0)
    plain = replace(SETTINGS, decoder=None, languages="none")
    encoder = Encoder.build(plain, corpus.vocabulary)
    export(encoder, tmp_path / "mlm", tokenizer_folder=corpus.tokenizer_folder, card="")
    found = Seq2Seq.build(
        replace(SETTINGS, size=None, start=str(tmp_path / "mlm")),
        corpus.vocabulary,
        languages=corpus.languages,
    )
    own = encoder.model.roberta.state_dict()
    for half in (found.model.encoder, found.model.decoder.roberta):
        for name, weight in half.state_dict().items():
            if "crossattention" in name or "pooler" in name:
                continue
            assert weight[: len(own[name])].equal(own[name]), name
    cross = found.model.decoder.roberta.encoder.layer[0].crossattention.self.query.weight
    assert not cross.equal(own["encoder.layer.0.attention.self.query.weight"])
    assert found.encoder.vocabulary_size == corpus.vocabulary.size + 3


def test_the_decoder_begins_as_the_encoder_is_now(corpus):
    apart = DecoderConfig(share_embeddings=False, cross_output="language")
    found = built(corpus, replace(RELEASED, decoder=apart))
    decoder, encoder = found.model.decoder, found.encoder.model
    cross = found.by_language.outputs[0].weight.clone()
    found.begin_decoder()
    for name, weight in encoder.lm_head.state_dict().items():
        assert weight.equal(decoder.lm_head.state_dict()[name]), name
    for name, weight in encoder.roberta.state_dict().items():
        if "pooler" not in name:
            assert weight.equal(decoder.roberta.state_dict()[name]), name
    assert found.by_language.embeddings.weight.equal(found.encoder.languages.weight)
    assert found.by_language.outputs[0].weight.equal(cross)
    size, first = corpus.vocabulary.size, corpus.vocabulary.cls
    for table in found._tables():
        assert all(row.equal(table[first]) for row in table[size : size + 3])


def test_it_writes_no_further_than_its_positions(corpus):
    found = built(corpus)
    reads = rows_of(source(np.full(62, 10, np.int32), 0, corpus.vocabulary))
    with torch.no_grad():
        said = found.write(reads, torch.tensor([1]), WritingConfig(more=100))
    assert int(said.lengths) <= 62


def test_only_xlm_rs_classes_have_decoders(corpus):
    settings = ModelConfig(size="mbert", layers=1, hidden=16, heads=2, decoder=DecoderConfig())
    with pytest.raises(ModelError, match="XLM-R's classes"):
        Seq2Seq.build(settings, corpus.vocabulary, languages=corpus.languages)


def test_faster_ways_reach_the_encoder_that_has_a_decoder(corpus):
    plain = built(corpus, replace(SETTINGS, norms="wide", projections="apart"))
    faster = built(corpus, replace(SETTINGS, norms="narrow", projections="joined"))
    encoders = [found.model.encoder.encoder.layer for found in (plain, faster)]
    joined = ["forward" in vars(layers[0].attention.self.query) for layers in encoders]
    hooks = [len(layers[0].output.LayerNorm._forward_hooks) for layers in encoders]
    assert (joined, hooks) == ([False, True], [0, 1])


def test_a_body_is_not_frozen_below_a_decoder(corpus):
    with pytest.raises(ModelError, match=r"model\.freeze is for encoders alone"):
        built(corpus, replace(SETTINGS, freeze="body"))


def test_the_released_variant_says_what_is_lost_and_keeps_it_beside(corpus, tmp_path):
    found = built(corpus, RELEASED)
    (loss,) = written(found, tmp_path / "model", corpus)
    assert "language embeddings" in loss
    assert "projection for each language" in loss
    assert "language_embeddings.safetensors" in loss
    assert loss in (tmp_path / "model/README.md").read_text()
    translator = Translator.open(tmp_path / "model", "cpu")
    reads, _ = example(corpus)
    for method in ("greedy", "beam"):
        settings = WritingConfig(method=method, beams=3)
        for language in (0, 1, 2):
            spoken = torch.tensor([language])
            with torch.no_grad():
                one, two = (
                    model.write(reads, spoken, settings) for model in (found, translator.seq2seq)
                )
            assert one.ids.equal(two.ids)
    with torch.no_grad():
        a, b = (found.write(reads, torch.tensor([n]), WritingConfig()).ids for n in (0, 1))
    assert not a.equal(b)


def test_sentences_of_a_batch_do_not_change_each_other(corpus):
    found = built(corpus)
    sentences = [np.arange(10, 10 + n, dtype=np.int32) for n in (3, 9, 6)]
    made = [source(ids, 0, corpus.vocabulary) for ids in sentences]
    with torch.no_grad():
        whole = found.write(rows_of(*made), torch.tensor([1, 2, 1]), WritingConfig())
        for row, (sequence, language) in enumerate(zip(made, (1, 2, 1), strict=True)):
            one = found.write(rows_of(sequence), torch.tensor([language]), WritingConfig())
            length = int(whole.lengths[row])
            assert int(one.lengths) == length
            assert whole.ids[row, :length].equal(one.ids[0, :length])
            assert length <= int(1.3 * len(sentences[row])) + 5


def test_an_encoder_does_not_translate(corpus, tmp_path):
    encoder = Encoder.build(replace(SETTINGS, decoder=None), corpus.vocabulary)
    export(encoder, tmp_path / "mlm", tokenizer_folder=corpus.tokenizer_folder, card="")
    with pytest.raises(ModelError, match="does not translate"):
        Translator.open(tmp_path / "mlm")


def test_a_damaged_folder_is_named(corpus, tmp_path):
    folder = tmp_path / "model"
    written(built(corpus), folder, corpus)
    weights = load_file(folder / "model.safetensors")
    weights.pop("decoder.roberta.encoder.layer.0.crossattention.self.query.weight")
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"lacks weights .*crossattention\.self\.query"):
        Translator.open(folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="cannot be opened as an encoder-decoder"):
        Translator.open(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be opened"):
        Translator.open(folder)


def test_lines_are_divided_into_words_as_the_corpus_was(corpus, tmp_path, monkeypatch):
    tokenizer_folder = tmp_path / "tokenizer"
    shutil.copytree(corpus.tokenizer_folder, tokenizer_folder)
    Pretokenization({"aa": "moses"}).save(tokenizer_folder)
    (loss,) = export_seq2seq(
        built(corpus), tmp_path / "model", tokenizer_folder=tokenizer_folder, base_tokenizer="",
        card="# card\n",
    )  # fmt: skip
    assert "divided into words" in loss
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
    expected = translator.tokenizer(["kalo , mitu .", "kalo,mitu."], add_special_tokens=False)
    divided, whole = expected["input_ids"]
    assert read == [([divided], 0), ([whole], 1)]
    assert divided != whole
    monkeypatch.setattr(
        translator.tokenizer, "batch_decode", lambda *_, **__: [" kalo , mitu\nsera ."]
    )
    assert dict(translator.translate(["kalo"], "bb", "aa")) == {0: "kalo, mitu sera."}
    assert dict(translator.translate(["kalo"], "aa", "bb")) == {0: "kalo , mitu sera ."}


def test_a_line_that_spells_a_special_token_is_text(corpus, tmp_path):
    written(built(corpus), tmp_path / "model", corpus)
    translator = Translator.open(tmp_path / "model", "cpu")
    (ids,) = translator._encoded(["kalo </s> <bb> <mask>"], "aa", None)
    unknown = translator.tokenizer.unk_token_id
    specials = {*translator.seq2seq.never, corpus.vocabulary.sep} - {unknown}
    assert not specials & set(ids)
    assert list(translator.translate([], "aa", "bb")) == []
    notes: list[str] = []
    (ids,) = translator._encoded(["kalo " * 100], "aa", notes.append)
    assert len(ids) == 62
    assert "1 of 1 lines have more than 62 tokens" in notes[0]
