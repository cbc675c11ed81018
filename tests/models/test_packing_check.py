"""Architectures that mix packed sequences are found."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from typing_extensions import override

from isoglot.errors import ModelError
from isoglot.models.encoder import Encoder
from isoglot.models.packing_check import _example_rows
from tests.models.tiny import (
    saved_model,
    tiny_encoder,
    tiny_model,
)

SMALL = {"vocab_size": 50, "max_position_embeddings": 40, "pad_token_id": 1}


class Leaky(nn.Module):
    """A layer whose output at a token depends on its neighbor, mask or no mask."""

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


def test_packing_check_finds_a_leak(tmp_path, monkeypatch):
    folder = saved_model(tmp_path, "bert")
    model = tiny_model("bert")
    model.bert.encoder.layer[0] = Leaky(model.bert.encoder.layer[0])
    monkeypatch.setattr(
        "isoglot.models.encoder.load_masked_lm", lambda *_, **__: (model, {}, (), {})
    )
    with pytest.raises(ModelError, match="see each other"):
        Encoder.from_pretrained(folder)


def test_packing_check_finds_other_positions(tmp_path, monkeypatch):
    folder = saved_model(tmp_path, "bert")
    model = tiny_model("bert")
    model.bert.embeddings.position_embeddings = Shifted(model.bert.embeddings.position_embeddings)
    monkeypatch.setattr(
        "isoglot.models.encoder.load_masked_lm", lambda *_, **__: (model, {}, (), {})
    )
    with pytest.raises(ModelError, match="numbers positions"):
        Encoder.from_pretrained(folder)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_states_that_are_not_finite_are_no_leak(tmp_path):
    """Comparisons with NaN are all false: a check without one for it would blame the mask."""
    model = tiny_model("bert", attention="sdpa")
    with torch.no_grad():
        model.bert.encoder.layer[0].intermediate.dense.weight.fill_(3e38)
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="gives states that are not finite"):
        Encoder.from_pretrained(str(tmp_path))


@pytest.mark.parametrize("name", ["xlm-r", "modernbert"])
def test_the_example_is_longer_than_any_window_and_fits_the_positions(name):
    encoder = tiny_encoder(name)
    rows, length = _example_rows(encoder)
    window = getattr(encoder.model.config, "sliding_window", None) or 4
    assert 2 * window < length <= encoder.max_positions
    assert (rows.sequences[0] == 0).sum() == length
