from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from transformers import (
    AutoModelForMaskedLM,
    BartConfig,
    DebertaV2Config,
    DistilBertConfig,
    MPNetConfig,
    XLMConfig,
)
from typing_extensions import override

from isoglot.errors import ModelError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.types import Rule, Vocabulary
from tests.models.tiny import (
    ARCHITECTURES,
    LANGUAGES,
    SHAPE,
    VOCABULARY,
    pack,
    random_tokens,
    replace,
    tiny_encoder,
    tiny_model,
)
from tests.models.worked_rows import mixed_rows

SMALL = {"vocab_size": 50, "max_position_embeddings": 40, "pad_token_id": 1}


def saved(folder, architecture):
    tiny_model(architecture, attention="sdpa").save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_open(tmp_path, architecture):
    encoder = Encoder.open(saved(tmp_path, architecture), vocabulary_size=VOCABULARY)
    _, rows = mixed_rows()
    encoder.eval()
    with torch.no_grad():
        assert torch.equal(encoder(rows).hidden, tiny_encoder(architecture)(rows).hidden)
    starts_after_padding = architecture in {"xlm-r", "roberta"}
    assert encoder.first_position == (2 if starts_after_padding else 0)
    assert encoder.max_positions == SHAPE["max_position_embeddings"] - encoder.first_position


def test_open_keeps_more_words_and_refuses_fewer(tmp_path):
    folder = saved(tmp_path, "bert")
    Encoder.open(folder, vocabulary_size=VOCABULARY - 1)
    with pytest.raises(ModelError, match=f"{VOCABULARY} words .* {VOCABULARY + 1}"):
        Encoder.open(folder, vocabulary_size=VOCABULARY + 1)


def test_a_bare_encoder_gets_a_new_head_and_half_a_one_is_refused(tmp_path):
    base = tiny_model("xlm-r", attention="sdpa").base_model
    base.save_pretrained(tmp_path)
    Encoder.open(str(tmp_path))
    base.encoder.layer = base.encoder.layer[:2]
    base.save_pretrained(tmp_path)
    base.config.num_hidden_layers = 3
    base.config.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="lacks weights of the encoder"):
        Encoder.open(str(tmp_path))


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"no model folder .*nowhere"):
        Encoder.open(str(tmp_path / "nowhere"))


def test_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ModelError, match=f"{tmp_path} cannot be opened"):
        Encoder.open(str(tmp_path))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (MPNetConfig(hidden_size=24, num_hidden_layers=1, **SMALL), "computes attention by itself"),
        (XLMConfig(emb_dim=16, n_layers=1, n_heads=2, **SMALL), "computes attention by itself"),
        (BartConfig(d_model=16, encoder_layers=1, decoder_layers=1, **SMALL), "encoder-decoder"),
        (DistilBertConfig(dim=24, n_layers=1, hidden_dim=16, **SMALL), "LM head at sites"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.model_type,
)
def test_architectures_that_cannot_are_refused(tmp_path, config, reason):
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=reason):
        Encoder.open(str(tmp_path))


def test_deberta_is_refused_with_the_reason(tmp_path):
    DebertaV2Config(**SMALL).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="disentangled attention"):
        Encoder.open(str(tmp_path))


class Leaky(nn.Module):
    """A layer whose output at a token depends on its neighbour, mask or no mask."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    @override
    def forward(self, hidden, *args, **kwargs):
        return self.inner(hidden + 0.01 * hidden.roll(1, dims=1), *args, **kwargs)


class Shifted(nn.Module):
    """Position embeddings that count from another place than the table's padding says."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    @override
    def forward(self, positions):
        return self.inner(torch.zeros_like(positions) if positions.shape[1] > 12 else positions)


def test_probe_finds_a_leak(tmp_path, monkeypatch):
    folder = saved(tmp_path, "bert")
    model = tiny_model("bert")
    model.bert.encoder.layer[0] = Leaky(model.bert.encoder.layer[0])
    monkeypatch.setattr("isoglot.models.encoder.open_model", lambda *_, **__: (model, {}))
    with pytest.raises(ModelError, match="see each other"):
        Encoder.open(folder)


def test_probe_finds_other_positions(tmp_path, monkeypatch):
    folder = saved(tmp_path, "bert")
    model = tiny_model("bert")
    model.bert.embeddings.position_embeddings = Shifted(model.bert.embeddings.position_embeddings)
    monkeypatch.setattr("isoglot.models.encoder.open_model", lambda *_, **__: (model, {}))
    with pytest.raises(ModelError, match="numbers positions"):
        Encoder.open(folder)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rows_may_be_longer_than_the_position_table(architecture):
    encoder = tiny_encoder(architecture)
    rng = np.random.default_rng(0)
    longest = min(70, encoder.max_positions)
    rows = pack([[random_tokens(rng, Rule.FULL, longest) for _ in range(3)]], 3 * longest)
    encoder.check_length(longest)
    with torch.no_grad():
        assert encoder(rows).hidden.isfinite().all()


def test_sequences_longer_than_the_position_table_are_refused():
    with pytest.raises(ModelError, match=r"71 tokens .* 70 positions"):
        tiny_encoder("xlm-r").check_length(71)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_layers_end_in_the_hidden_states(architecture):
    _, rows = mixed_rows()
    encoder = tiny_encoder(architecture)
    with torch.no_grad():
        states = encoder(rows, layers=True)
    assert states.layers is not None
    assert len(states.layers) == SHAPE["num_hidden_layers"] + 1
    assert torch.equal(states.layers[-1], states.hidden)
    assert encoder(rows).layers is None


def test_flex_does_not_train_on_a_cpu():
    encoder = tiny_encoder("bert", attention="flex").train()
    with pytest.raises(ModelError, match=r"Leave model\.attention at auto"):
        encoder(mixed_rows()[1])


@pytest.mark.parametrize("where", ["all", "slots"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_new_language_embeddings_change_nothing(architecture, where):
    _, rows = mixed_rows()
    with torch.no_grad():
        plain = tiny_encoder(architecture)(rows).hidden
        spoken = tiny_encoder(architecture, languages=where)(rows).hidden
    assert torch.equal(plain, spoken)


@pytest.mark.parametrize("where", ["all", "slots"])
def test_language_embeddings_reach_their_tokens(where):
    _, rows = mixed_rows()
    encoder = tiny_encoder("xlm-r", languages=where)
    plain = tiny_encoder("xlm-r")
    assert encoder.languages is not None
    assert encoder.languages.weight.shape == (len(LANGUAGES), SHAPE["hidden_size"])
    with torch.no_grad():
        encoder.languages.weight.normal_()
        before, after = plain(rows).hidden, encoder(rows).hidden
    moved = (before != after).any(dim=-1)
    # no token but a slot sees a slot, so the others keep every bit
    expected = rows.parts == 1 if where == "slots" else torch.ones_like(moved)
    assert torch.equal(moved, expected)


def test_language_of_padding_may_be_unknown():
    rows = pack([[]], 4)
    rows = replace(rows, languages=torch.full_like(rows.languages, -1))
    with torch.no_grad():
        assert tiny_encoder("bert", languages="all")(rows).hidden.isfinite().all()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_attention_dropout_is_off_and_hidden_dropout_as_asked(tmp_path, architecture):
    folder = saved(tmp_path, architecture)
    if architecture == "eurobert":
        with pytest.raises(ModelError, match="no dropout of hidden states"):
            Encoder.open(folder, ModelConfig(start=folder, dropout=0.25))
        return
    encoder = Encoder.open(folder, ModelConfig(start=folder, dropout=0.25))
    kinds = {
        module.p: name for name, module in encoder.named_modules() if isinstance(module, nn.Dropout)
    }
    assert kinds.keys() <= {0.0, 0.25}
    assert 0.25 in kinds
    _, rows = mixed_rows()
    encoder.train()
    assert not torch.equal(encoder(rows).hidden, encoder(rows).hidden)
    still = Encoder.open(folder, ModelConfig(start=folder, dropout=0.0)).train()
    assert torch.equal(still(rows).hidden, still(rows).hidden)


def vocabulary(size=60, pad=3):
    return Vocabulary(
        size=size,
        cls=0,
        sep=2,
        pad=pad,
        mask=4,
        special=(0, 2, 3, 4),
        word_starts=np.ones(size, dtype=np.bool_),
    )


@pytest.mark.parametrize(("size", "first"), [("tiny", 4), ("mbert", 0)])
def test_make(size, first):
    settings = ModelConfig(size=size, layers=2, hidden=32, heads=2, max_positions=20)
    encoder = Encoder.build(settings, vocabulary())
    assert (encoder.first_position, encoder.max_positions) == (first, 20)
    assert encoder.vocabulary_size == 60
    assert encoder.hidden_size == 32
    assert encoder.model.config.num_hidden_layers == 2
    assert encoder.model.config.pad_token_id == 3
    rows = pack([[random_tokens(np.random.default_rng(0), Rule.FULL, 20)] * 2], 41)
    assert encoder(replace(rows, ids=rows.ids % 60)).hidden.shape == (1, 41, 32)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (ModelConfig(), "either model.start"),
        (ModelConfig(start="x", size="tiny"), "either model.start"),
        (ModelConfig(size="tiny", heads=5), "multiple of model.heads"),
    ],
)
def test_impossible_settings(settings, fault):
    with pytest.raises(ModelError, match=fault):
        Encoder.build(settings, vocabulary())


def test_a_copy_runs_on_its_own_weights():
    """Momentum encoders and teachers are copies."""
    _, rows = mixed_rows()
    encoder = tiny_encoder("xlm-r")
    twin = copy.deepcopy(encoder)
    with torch.no_grad():
        before = twin.logits_at(twin(rows), torch.arange(3))
        for weight in encoder.parameters():
            weight.zero_()
        assert torch.equal(twin.logits_at(twin(rows), torch.arange(3)), before)


def test_unused_pooler_is_frozen():
    model = tiny_model("bert")
    model.bert.pooler = nn.Linear(2, 2)
    encoder = Encoder(model, ModelConfig())
    frozen = {name for name, weight in encoder.named_parameters() if not weight.requires_grad}
    assert frozen == {"model.bert.pooler.weight", "model.bert.pooler.bias"}
