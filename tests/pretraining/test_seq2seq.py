"""Encoder-decoders in the same loop: exact resume, stages, co-occurrence, and that they learn."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.errors import CorpusError
from isoglot.models.config import DecoderConfig, ModelConfig
from isoglot.models.seq2seq import Seq2Seq
from isoglot.objectives.denoise import Denoise
from isoglot.objectives.mass import MASS
from isoglot.pretraining.build import build_train_module
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig
from isoglot.pretraining.run import pretrain
from isoglot.pretraining.train_module import Seq2SeqTrainModule, visible_to_decoder
from isoglot.types import Cursor, Seq2SeqBatch
from tests.pretraining import launching
from tests.pretraining.translating import config, stage
from tests.tiny_corpus import make_corpus

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A run of three stages that nobody stops."""
    folder = tmp_path_factory.mktemp("whole")
    assert pretrain(config(), corpus, folder, console=QUIET).finished
    return folder


def losses(folder):
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in record.items() if "second" not in k} for record in records]


def begun(whole, run, step):
    """A run that was stopped after a step: what the whole one had written by then."""
    (run / "checkpoints").mkdir(parents=True)
    name = f"step-{step:08d}"
    (run / "checkpoints" / name).symlink_to(whole / "checkpoints" / name)
    (run / "metrics.jsonl").write_text((whole / "metrics.jsonl").read_text())


def test_what_is_written_down(whole):
    last = next(r for r in reversed(losses(whole)) if "backtranslate/loss" in r)
    assert {"backtranslate/empty", "backtranslate/cut", "backtranslate/copied"} <= last.keys()
    mass = next(r for r in losses(whole) if "mass/loss" in r)
    assert "cooccurrence/loss" in mass
    held_out = losses(whole)[-1]
    assert "valid/backtranslate/bb/perplexity" in held_out


def test_the_decoder_begins_as_the_encoder(corpus, tmp_path):
    """XLM: the encoder that MLM trained is loaded into both halves."""
    still = OptimizerConfig(learning_rate=0.0)
    stages = (stage(6, "mlm"), replace(stage(1, "denoise"), optimizer=still))
    pretrain(config(stages=stages), corpus, tmp_path / "run", console=QUIET)
    weights = load_file(tmp_path / "run/model/model.safetensors")
    for name, weight in weights.items():
        twin = name.replace("encoder.encoder.", "decoder.roberta.encoder.")
        if name.startswith("encoder.encoder."):
            assert weight.equal(weights[twin]), name


def test_a_run_goes_on_from_what_mass_trained(corpus, whole, tmp_path):
    model = replace(config().model, size=None, num_layers=None, init_from=str(whole / "model"))
    frozen = OptimizerConfig(learning_rate=0.0)
    again = config(model=model, stages=(replace(stage(1, "mass"), optimizer=frozen),))
    pretrain(again, corpus, tmp_path / "run", console=QUIET)
    one, two = (load_file(f / "model/model.safetensors") for f in (tmp_path / "run", whole))
    assert one.keys() == two.keys()
    assert all(one[key].equal(two[key]) for key in two)
    other = make_corpus(tmp_path / "other", vocabulary=300)
    with pytest.raises(CorpusError, match="another tokenizer"):
        pretrain(again, other, tmp_path / "refused", console=QUIET)


def test_a_trained_decoder_does_not_begin_again(corpus, whole, tmp_path):
    model = replace(config().model, size=None, num_layers=None, init_from=str(whole / "model"))
    still = OptimizerConfig(learning_rate=0.0)
    stages = tuple(replace(stage(1, name), optimizer=still) for name in ("mlm", "denoise"))
    pretrain(config(model=model, stages=stages), corpus, tmp_path / "run", console=QUIET)
    one, two = (load_file(f / "model/model.safetensors") for f in (tmp_path / "run", whole))
    assert all(one[key].equal(two[key]) for key in two)


def test_a_language_with_the_name_of_a_token_is_refused(corpus, monkeypatch):
    monkeypatch.setattr(type(corpus), "languages", ("aa", "pad"))
    with pytest.raises(CorpusError, match="'pad' would get the token <pad>, which"):
        build_train_module(config().model, {}, corpus, row_length=64)


def test_it_learns_to_write(corpus, tmp_path):
    """A few seconds of denoising: far better than guessing, whatever is to be written."""
    torch.manual_seed(0)
    fast = config(
        stages=(stage(100, "denoise"),),
        objectives={
            "denoise": Denoise(max_shuffle_distance=0, word_dropout_prob=0, word_blanking_prob=0)
        },
        model=ModelConfig(
            size="tiny",
            num_layers=1,
            hidden_size=64,
            num_heads=4,
            max_positions=64,
            dropout=0.0,
            decoder=DecoderConfig(),
        ),
        optimizer=OptimizerConfig(learning_rate=4e-3, weight_decay=0.0),
        checkpoint=CheckpointConfig(every_steps=1000),
    )
    pretrain(fast, corpus, tmp_path / "run", console=QUIET)
    found = [r["denoise/accuracy"] for r in losses(tmp_path / "run") if "denoise/accuracy" in r]
    assert found[0] < 0.1
    assert sum(found[-5:]) / 5 > 0.33


@pytest.mark.slow
def test_two_processes_go_on_with_what_one_began(corpus, whole, tmp_path):
    begun(whole, tmp_path / "run", 2)
    options = ("--mix", "seq2seq", "--resume")
    launching.finish(launching.command(corpus.folder, tmp_path / "run", *options, processes=2))
    found, alone = (launching.losses(f / "metrics.jsonl") for f in (tmp_path / "run", whole))
    assert [r["tokens"] for r in found.values()] == [r["tokens"] for r in alone.values()]
    # with the same weights only dropout differs
    assert found[3]["mlm/loss"] == pytest.approx(alone[3]["mlm/loss"], rel=0.02)
    assert found[3]["mlm/loss"] != alone[3]["mlm/loss"]


def a_batch(corpus, **makers):
    opened = open_streams(corpus, stage(1, *makers).streams, makers, row_length=64)
    shape = BatchConfig(rows=8, micro_rows=8, row_length=64)
    batch = next(Loader(corpus, opened, shape).steps(Cursor()))[0]
    assert isinstance(batch, Seq2SeqBatch)
    return batch


def test_the_loss_of_mass_has_no_gradient_where_it_masks(corpus, monkeypatch):
    """From a sentence to the encoder's states, as a run computes it."""
    torch.manual_seed(0)
    batch = a_batch(corpus, mass=MASS())
    seq2seq = Seq2Seq.build(config().model, corpus.vocabulary, languages=corpus.languages)
    usual, heard = Seq2Seq.decode, []

    def listening(self, decoding, states, seen):
        states.retain_grad()
        heard.append(states)
        return usual(self, decoding, states, seen)

    monkeypatch.setattr(Seq2Seq, "decode", listening)
    Seq2SeqTrainModule(seq2seq, {"mass": MASS()}, corpus)(batch)["mass"].total.backward()
    moved = heard[0].grad.abs().sum(dim=-1)
    masked = batch.rows.ids == corpus.vocabulary.mask
    assert masked.any()
    assert (moved[masked] == 0).all()
    assert (moved[~masked & (batch.rows.sequences >= 0)] > 0).all()


def test_what_the_decoder_may_look_at(corpus):
    """Not padding, and not what MASS hides behind a mask; blanks of denoising it may."""
    batch = a_batch(corpus, mass=MASS(), denoise=Denoise(word_blanking_prob=0.5))
    masks = batch.rows.ids == corpus.vocabulary.mask
    start, stop = batch.target_slices["mass"]
    of_mass = torch.zeros(len(masks), dtype=torch.bool)
    of_mass[batch.target_positions[start:stop] // masks.shape[1]] = True
    there = batch.rows.sequences >= 0
    assert visible_to_decoder(batch).equal(there & ~(masks & of_mass[:, None]))
    assert (masks & of_mass[:, None]).any()
    assert (masks & ~of_mass[:, None]).any()
