"""Encoder-decoders: how they start, what the decoder sees, what it generates."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from isoglot.errors import ModelError
from isoglot.models.config import DecoderConfig, GenerationConfig, ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.layers import FusedQKVLinear
from isoglot.models.seq2seq import Seq2Seq, generate
from isoglot.models.translator import Translator
from isoglot.objectives.seq2seq import build_source
from tests.models.tiny_seq2seq import (
    RELEASED,
    SETTINGS,
    build_seq2seq,
    example,
    export_to,
    rows_of,
)


def test_half_of_the_layers_are_the_decoders(corpus):
    found = Seq2Seq.build(
        ModelConfig(size="small", hidden_size=32, num_heads=2, decoder=DecoderConfig()),
        corpus.vocabulary,
        languages=corpus.languages,
    )
    assert len(found.model.encoder.encoder.layer) == 3
    assert len(found.model.decoder.roberta.encoder.layer) == 3
    assert found.encoder.vocabulary_size == corpus.vocabulary.size + 3


def test_the_decoder_cannot_look_at_what_is_not_visible(corpus):
    found = build_seq2seq(corpus)
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
    found = build_seq2seq(corpus)
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


def test_languages_are_taken_over_by_code(corpus, tmp_path):
    export_to(build_seq2seq(corpus), tmp_path / "model", corpus)
    first = Translator.open(tmp_path / "model", "cpu").seq2seq
    again = Seq2Seq.build(
        replace(SETTINGS, size=None, init_from=str(tmp_path / "model")),
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
    found = build_seq2seq(corpus, apart)
    export_to(found, tmp_path / "model", corpus)
    again = replace(apart, size=None, init_from=str(tmp_path / "model"))
    one_table = replace(again, decoder=DecoderConfig())
    with pytest.raises(ModelError, match="share_embeddings to false"):
        Seq2Seq.build(one_table, corpus.vocabulary, languages=corpus.languages)
    opened = Seq2Seq.build(again, corpus.vocabulary, languages=corpus.languages)
    for mine, theirs in zip(opened._embedding_tables(), found._embedding_tables(), strict=True):
        assert mine.equal(theirs)


def test_one_masked_language_model_in_both_halves(corpus, tmp_path):
    torch.manual_seed(0)
    plain = replace(SETTINGS, decoder=None, language_embeddings="none")
    encoder = Encoder.build(plain, corpus.vocabulary)
    export_encoder(encoder, tmp_path / "mlm", tokenizer_folder=corpus.tokenizer_folder, card="")
    found = Seq2Seq.build(
        replace(SETTINGS, size=None, init_from=str(tmp_path / "mlm")),
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
    apart = DecoderConfig(share_embeddings=False, cross_attention_output="language")
    found = build_seq2seq(corpus, replace(RELEASED, decoder=apart))
    decoder, encoder = found.model.decoder, found.encoder.model
    cross = found.language_parts.outputs[0].weight.clone()
    found.init_decoder()
    for name, weight in encoder.lm_head.state_dict().items():
        assert weight.equal(decoder.lm_head.state_dict()[name]), name
    for name, weight in encoder.roberta.state_dict().items():
        if "pooler" not in name:
            assert weight.equal(decoder.roberta.state_dict()[name]), name
    assert found.language_parts.embeddings.weight.equal(found.encoder.languages.weight)
    assert found.language_parts.outputs[0].weight.equal(cross)
    size, first = corpus.vocabulary.size, corpus.vocabulary.cls
    for table in found._embedding_tables():
        assert all(row.equal(table[first]) for row in table[size : size + 3])


def test_language_tokens_that_an_encoder_objective_trained_stay(corpus):
    found = build_seq2seq(corpus)
    size = corpus.vocabulary.size
    before = [table[size:].clone() for table in found._embedding_tables()]
    found.init_decoder(language_tokens_trained=True)
    for table, own in zip(found._embedding_tables(), before, strict=True):
        assert table[size:].equal(own)


def test_it_writes_no_further_than_its_positions(corpus):
    found = build_seq2seq(corpus)
    reads = rows_of(build_source(np.full(62, 10, np.int32), 0, corpus.vocabulary))
    with torch.no_grad():
        said = found.generate(reads, torch.tensor([1]), GenerationConfig(max_length_b=100))
    assert int(said.lengths) <= 62


def test_only_xlm_rs_classes_have_decoders(corpus):
    settings = ModelConfig(
        size="mbert", num_layers=1, hidden_size=16, num_heads=2, decoder=DecoderConfig()
    )
    with pytest.raises(ModelError, match="XLM-R's classes"):
        Seq2Seq.build(settings, corpus.vocabulary, languages=corpus.languages)


def test_faster_ways_reach_the_encoder_that_has_a_decoder(corpus):
    plain = build_seq2seq(corpus, replace(SETTINGS, norm_dtype="float32", fuse_qkv=False))
    faster = build_seq2seq(corpus, replace(SETTINGS, norm_dtype="bf16", fuse_qkv=True))
    encoders = [found.model.encoder.encoder.layer for found in (plain, faster)]
    fused = [isinstance(layers[0].attention.self.query, FusedQKVLinear) for layers in encoders]
    hooks = [len(layers[0].output.LayerNorm._forward_hooks) for layers in encoders]
    assert (fused, hooks) == ([False, True], [0, 1])


def test_a_body_is_not_frozen_below_a_decoder(corpus):
    with pytest.raises(ModelError, match=r"model\.freeze is for an encoder alone"):
        build_seq2seq(corpus, replace(SETTINGS, freeze="body"))


def test_sentences_of_a_batch_do_not_change_each_other(corpus):
    found = build_seq2seq(corpus)
    sentences = [np.arange(10, 10 + n, dtype=np.int32) for n in (3, 9, 6)]
    made = [build_source(ids, 0, corpus.vocabulary) for ids in sentences]
    with torch.no_grad():
        whole = found.generate(rows_of(*made), torch.tensor([1, 2, 1]), GenerationConfig())
        for row, (sequence, language) in enumerate(zip(made, (1, 2, 1), strict=True)):
            one = found.generate(rows_of(sequence), torch.tensor([language]), GenerationConfig())
            length = int(whole.lengths[row])
            assert int(one.lengths) == length
            assert whole.ids[row, :length].equal(one.ids[0, :length])
            assert length <= int(1.3 * len(sentences[row])) + 5


END, PAD = 2, 1


class Says:
    """A model that has said all it will say."""

    config = SimpleNamespace(eos_token_id=END, pad_token_id=PAD)

    def __init__(self, *said):
        self.said = torch.tensor(said)
        self.asked = {}

    def generate(self, **asked):
        self.asked = asked
        return self.said


def generated(model, limits, settings=None, suppress_tokens=()):
    number = len(model.said)
    return generate(
        model,
        torch.zeros(number, 3, 4),
        torch.ones(number, 3, dtype=torch.bool),
        model.said[:, 0],
        torch.tensor(limits),
        settings or GenerationConfig(),
        suppress_tokens=suppress_tokens,
    )


def test_where_hypotheses_end():
    model = Says(
        [50, 10, 11, END, PAD],
        [51, END, PAD, PAD, PAD],
        [50, 10, 11, 12, 13],
        [50, 10, 11, 12, END],
        [50, 10, 11, END, PAD],
    )
    found = generated(model, [4, 4, 4, 2, 2])
    assert found.lengths.tolist() == [2, 0, 4, 2, 2]
    assert found.truncated.tolist() == [False, False, True, True, False]
    assert found.ids.tolist() == [
        [10, 11, PAD, PAD],
        [PAD, PAD, PAD, PAD],
        [10, 11, 12, 13],
        [10, 11, PAD, PAD],
        [10, 11, PAD, PAD],
    ]


def test_what_is_asked_for():
    model = Says([50, 10, END], [51, END, PAD])
    generated(model, [7, 5], suppress_tokens=(0, 3))
    assert model.asked["max_length"] == 8, "the first token, and the longest"
    assert model.asked["decoder_start_token_id"] == [50, 51]
    assert model.asked["suppress_tokens"] == [0, 3]
    assert (model.asked["num_beams"], model.asked["do_sample"]) == (1, False)


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        (
            GenerationConfig(method="beam", num_beams=3, length_penalty=0.6),
            (3, False, 0.6, None, None),
        ),
        (GenerationConfig(method="sample", temperature=0.7), (1, True, None, 0.7, 0)),
    ],
)
def test_beams_and_drawing(settings, asked):
    model = Says([50, 10, END])
    generated(model, [4], settings)
    names = ("num_beams", "do_sample", "length_penalty", "temperature", "top_k")
    assert tuple(model.asked.get(name) for name in names) == asked


def test_the_limit_and_the_settings_in_words():
    assert GenerationConfig().max_lengths(torch.tensor([1, 10, 7])).tolist() == [6, 18, 14]
    assert GenerationConfig().describe() == "greedy"
    assert GenerationConfig(method="beam", num_beams=3).describe() == "beam, num_beams=3"
