"""Back-translation: what is written, what is learned from it, and what has no gradient."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import TextStream
from isoglot.errors import RecipeError
from isoglot.models.config import DecoderConfig, ModelConfig
from isoglot.models.seq2seq import Generated, Seq2Seq
from isoglot.objectives import ForwardResult
from isoglot.objectives import backtranslate as module
from isoglot.objectives.backtranslate import BackTranslate, BackTranslateModule
from isoglot.objectives.mass import MASS
from isoglot.pretraining.config import PretrainConfig, StageConfig, objectives_of
from isoglot.pretraining.train_module import Seq2SeqTrainModule, visible_to_decoder
from isoglot.types import Cursor

SETTINGS = ModelConfig(
    size="tiny",
    num_layers=1,
    hidden_size=32,
    num_heads=2,
    max_positions=96,
    dropout=0.1,
    decoder=DecoderConfig(),
)
STREAMS = {"text": TextStream(objectives=("backtranslate", "mass"), unit="sentence")}


def trainee_of(corpus, **settings):
    torch.manual_seed(0)
    objectives = {"backtranslate": BackTranslate(**settings), "mass": MASS()}
    seq2seq = Seq2Seq.build(SETTINGS, corpus.vocabulary, languages=corpus.languages)
    return Seq2SeqTrainModule(seq2seq, objectives, corpus).train()


@pytest.fixture
def batch(corpus):
    makers = {"backtranslate": BackTranslate(), "mass": MASS()}
    opened = open_streams(corpus, STREAMS, makers, row_length=64)
    shape = BatchConfig(rows=8, micro_rows=8, row_length=64)
    return next(Loader(corpus, opened, shape).steps(Cursor()))[0]


def read_by(train_module, batch, seed=3):
    """The batch with what was written in it, and the losses."""
    copy = batch.to("cpu")
    copy.rows = copy.rows.map(torch.clone)
    torch.manual_seed(seed)
    return copy, train_module(copy)


def test_what_was_written_is_read(corpus, batch):
    train_module = trainee_of(corpus)
    inference = train_module.seq2seq
    mine = batch.markers["backtranslate"]["first"] // batch.rows.ids.shape[1]
    languages = batch.rows.languages[mine, 0]
    inference.eval()
    with torch.no_grad():
        expected = inference.generate(
            batch.aux_rows["backtranslate"], languages, BackTranslate().generation
        )
    inference.train()
    filled, _ = read_by(train_module, batch)
    end = corpus.vocabulary.sep
    for row, length, ids in zip(mine, expected.lengths, expected.ids, strict=True):
        there = filled.rows.sequences[row] >= 0
        assert filled.rows.ids[row][there].tolist()[1:] == [*ids[:length].tolist(), end]
        assert filled.rows.positions[row][there].tolist() == list(range(int(length) + 2))
    assert train_module.seq2seq.training, "dropout is on again"
    sides = batch.aux_rows["backtranslate"]
    assert (filled.rows.languages[mine, 0] != sides.languages[:, 0]).all(), "another language"
    firsts = filled.rows.ids[mine, 0] - corpus.vocabulary.size
    assert firsts.equal(languages)


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_the_same_seed_writes_the_same(corpus, batch, method):
    train_module = trainee_of(
        corpus, generation=replace(BackTranslate().generation, method=method, num_beams=2)
    )
    one, two, three = (read_by(train_module, batch, seed)[0].rows.ids for seed in (3, 3, 4))
    assert one.equal(two)
    assert (method == "sample") != (one.shape == three.shape and one.equal(three))


def test_no_gradient_goes_through_what_was_written(corpus, batch, monkeypatch):
    """The gradient is that of a pair that somebody else wrote."""
    train_module = trainee_of(corpus)
    kept = {}
    usual = Seq2Seq.generate

    def listening(self, rows, languages, settings):
        assert not torch.is_grad_enabled()
        assert not self.training
        kept["written"] = usual(self, rows, languages, settings)
        assert not kept["written"].ids.requires_grad
        return kept["written"]

    monkeypatch.setattr(Seq2Seq, "generate", listening)

    def gradients():
        train_module.zero_grad()
        _, sums = read_by(train_module, batch)
        sums["backtranslate"].total.backward()
        return {n: p.grad.clone() for n, p in train_module.named_parameters() if p.grad is not None}

    ours = gradients()
    monkeypatch.setattr(Seq2Seq, "generate", lambda *_: kept["written"])
    theirs = gradients()
    assert ours.keys() == theirs.keys()
    assert all(ours[name].equal(theirs[name]) for name in ours)
    assert any(gradient.any() for gradient in ours.values())


def test_nothing_written_teaches_nothing_and_is_counted(corpus, batch, monkeypatch):
    number = len(batch.aux_rows["backtranslate"].ids)

    def silent(self, rows, languages, settings):
        lengths = torch.ones(number, dtype=torch.int64)
        lengths[0] = 0
        ids = torch.full((number, 1), 10)
        ids[0] = corpus.vocabulary.pad
        return Generated(ids=ids, lengths=lengths, truncated=torch.zeros(number, dtype=torch.bool))

    monkeypatch.setattr(Seq2Seq, "generate", silent)
    train_module = trainee_of(corpus).eval()
    filled, sums = read_by(train_module, batch)
    row = int(batch.markers["backtranslate"]["first"][0] // batch.rows.ids.shape[1])
    there = filled.rows.sequences[row] >= 0
    assert there.sum() == 2, "a language and an end"
    empty, count = sums["backtranslate"].ratios["empty"]
    assert (int(empty), int(count)) == (1, number)
    decoding = filled.decoding
    start, stop = decoding.target_slices["backtranslate"]
    with torch.no_grad():
        states = train_module.encoder(filled.rows).hidden
        decoded = train_module.seq2seq.decode(decoding, states, visible_to_decoder(filled))
        found = train_module.seq2seq.losses(
            decoded,
            decoding.target_positions[start:stop],
            decoding.targets[start:stop],
            label_smoothing=0.0,
        )
    of_row = decoding.source_rows[
        decoding.target_positions[start:stop] // decoding.rows.ids.shape[1]
    ]
    expected = found.losses[of_row != row].sum()
    assert sums["backtranslate"].total.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_sentence_without_translation_is_never_right(batch):
    decoding = batch.decoding
    start, stop = decoding.target_slices["backtranslate"]
    of_row = decoding.source_rows[
        decoding.target_positions[start:stop] // decoding.rows.ids.shape[1]
    ]
    learns = BackTranslateModule(BackTranslate(), end=2)
    learns._empty = torch.arange(len(batch.rows.ids)) == of_row[0]
    everywhere = torch.ones(stop - start)
    encoded = ForwardResult(
        batch=batch,
        name="backtranslate",
        hidden_states=everywhere,
        target_losses=everywhere,
        correct=everywhere > 0,
    )
    found = learns.loss(encoded)
    expected = (of_row != of_row[0]).sum()
    assert 0 < expected < stop - start
    assert found.total == found.metrics["accuracy"] == expected


def test_what_is_said_of_translations(batch):
    sides = batch.aux_rows["backtranslate"]
    tokens = (sides.sequences >= 0).sum(dim=1) - 2
    number = len(tokens)
    cut = torch.arange(number) < 2
    lengths = torch.where(cut, 4, 0)
    written = Generated(ids=torch.full((number, 4), 10), lengths=lengths, truncated=cut)
    said = module._statistics(sides, written)
    assert [int(n) for n in said["cut"]] == [2, number]
    assert [int(n) for n in said["empty"]] == [number - 2, number]
    assert [int(n) for n in said["length_ratio"]] == [8, int(tokens.sum())]


def test_a_micro_batch_without_sentences_has_the_same_statistics(batch):
    """Processes add up their sums in one order, whoever has sentences."""
    learns = BackTranslateModule(BackTranslate(), end=2)
    inference: Any = SimpleNamespace(gathered=nullcontext)
    learns.before_forward("backtranslate", replace(batch, markers={}), inference)
    nothing = torch.zeros(0)
    result = ForwardResult(
        batch=batch,
        name="backtranslate",
        hidden_states=nothing,
        target_losses=nothing,
        correct=nothing,
    )
    found = learns.loss(result).ratios
    sides = batch.aux_rows["backtranslate"]
    tokens = (sides.sequences >= 0).sum(dim=1) - 2
    written = Generated(ids=sides.ids[:, 1:-1], lengths=tokens, truncated=tokens < 0)
    assert list(found) == list(module._statistics(sides, written))
    assert all(int(number) == 0 for pair in found.values() for number in pair)


def test_room_is_planned_for_the_longest_translation():
    """1.3 · 10 + 5 tokens, the language and the end; the sentence as a target and as a source."""
    assert BackTranslate().lengths(np.array([[10], [20]])).tolist() == [[20, 11, 12], [33, 21, 22]]


def test_copies_are_counted(batch):
    sides = batch.aux_rows["backtranslate"]
    tokens = (sides.sequences >= 0).sum(dim=1) - 2
    ids = sides.ids[:, 1:-1].clone()
    written = Generated(ids=ids, lengths=tokens, truncated=tokens < 0)
    copied, count = module._statistics(sides, written)["copied"]
    assert copied == count == len(tokens)
    other = Generated(ids=ids + 1, lengths=tokens, truncated=tokens < 0)
    assert module._statistics(sides, other)["copied"][0] == 0


def test_label_smoothing_is_for_training(corpus, batch):
    plain, smooth = trainee_of(corpus), trainee_of(corpus, label_smoothing=0.1)
    for training in (True, False):
        one, two = (
            read_by(train_module.train(training), batch)[1]["backtranslate"].total.item()
            for train_module in (plain, smooth)
        )
        assert (one == two) != training


def test_an_encoder_cannot_write():
    stage = StageConfig(steps=1, streams=dict(STREAMS))
    config = PretrainConfig(model=ModelConfig(size="tiny"), stages=(stage,))
    with pytest.raises(RecipeError, match=r"'backtranslate' needs a decoder.*model\.decoder"):
        objectives_of(config)
