"""The encoder over packed rows: loading, length, layers, language embeddings."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from isoglot.errors import ModelError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.types import MaskRule, Vocabulary
from tests.models.tiny import (
    ARCHITECTURES,
    LANGUAGES,
    SHAPE,
    VOCABULARY,
    mixed_rows,
    pack,
    random_tokens,
    replace,
    saved_model,
    tiny_encoder,
)

SMALL = {"vocab_size": 50, "max_position_embeddings": 40, "pad_token_id": 1}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_from_pretrained(tmp_path, architecture):
    encoder = Encoder.from_pretrained(
        saved_model(tmp_path, architecture), vocabulary_size=VOCABULARY
    )
    _, rows = mixed_rows()
    encoder.eval()
    with torch.no_grad():
        assert torch.equal(encoder(rows).hidden, tiny_encoder(architecture)(rows).hidden)
    starts_after_padding = architecture in {"xlm-r", "roberta"}
    assert encoder.first_position == (2 if starts_after_padding else 0)
    assert encoder.max_positions == SHAPE["max_position_embeddings"] - encoder.first_position


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rows_may_be_longer_than_the_position_table(architecture):
    encoder = tiny_encoder(architecture)
    rng = np.random.default_rng(0)
    longest = min(70, encoder.max_positions)
    rows = pack([[random_tokens(rng, MaskRule.FULL, longest) for _ in range(3)]], 3 * longest)
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


@pytest.mark.parametrize(
    ("architecture", "where"), [*((name, "all") for name in ARCHITECTURES), ("xlm-r", "slots")]
)
def test_new_language_embeddings_change_nothing(architecture, where):
    _, rows = mixed_rows()
    with torch.no_grad():
        plain = tiny_encoder(architecture)(rows).hidden
        spoken = tiny_encoder(architecture, language_embeddings=where)(rows).hidden
    assert torch.equal(plain, spoken)


@pytest.mark.parametrize("where", ["all", "slots"])
def test_language_embeddings_reach_their_tokens(where):
    _, rows = mixed_rows()
    encoder = tiny_encoder("xlm-r", language_embeddings=where)
    plain = tiny_encoder("xlm-r")
    assert encoder.languages is not None
    assert encoder.languages.weight.shape == (len(LANGUAGES), SHAPE["hidden_size"])
    with torch.no_grad():
        encoder.languages.weight.normal_()
        before, after = plain(rows).hidden, encoder(rows).hidden
    moved = (before != after).any(dim=-1)
    # no token but a slot sees a slot, so the others keep every bit
    expected = rows.roles == 1 if where == "slots" else torch.ones_like(moved)
    assert torch.equal(moved, expected)


def test_language_of_padding_may_be_unknown():
    rows = pack([[]], 4)
    rows = replace(rows, languages=torch.full_like(rows.languages, -1))
    with torch.no_grad():
        assert tiny_encoder("bert", language_embeddings="all")(rows).hidden.isfinite().all()


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
def test_from_scratch(size, first):
    settings = ModelConfig(size=size, num_layers=2, hidden_size=32, num_heads=2, max_positions=20)
    encoder = Encoder.build(settings, vocabulary())
    assert (encoder.first_position, encoder.max_positions) == (first, 20)
    assert encoder.vocabulary_size == 60
    assert encoder.hidden_size == 32
    assert encoder.model.config.num_hidden_layers == 2
    assert encoder.model.config.pad_token_id == 3
    rows = pack([[random_tokens(np.random.default_rng(0), MaskRule.FULL, 20)] * 2], 41)
    assert encoder(replace(rows, ids=rows.ids % 60)).hidden.shape == (1, 41, 32)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (ModelConfig(), "either model.init_from"),
        (ModelConfig(init_from="x", size="tiny"), "either model.init_from"),
        (ModelConfig(size="tiny", num_heads=5), "multiple of model.num_heads"),
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
