"""The states of one layer are those of a pass through all layers."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel

from isoglot.alignment.layer_states import LayerStates
from isoglot.evaluation.embed import pad_rows
from tests.models.tiny import CONFIGS, tiny_encoder

ROWS = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]


@torch.no_grad()
def test_against_the_plain_model(folder, model):
    plain = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    for layer in range(4):
        states = LayerStates(model[0], layer)
        # the last layer's states are those of the whole model
        assert (states._next is None) == (layer == 3)
        found = states(pad_rows(ROWS, 0))
        for row, ids in enumerate(ROWS):
            expected = plain(torch.tensor([ids]), output_hidden_states=True).hidden_states[layer]
            torch.testing.assert_close(found[row, : len(ids)], expected[0], atol=1e-5, rtol=1e-4)


def test_layers_above_are_not_computed(model):
    encoder = model[0]
    calls: list[int] = []
    handles = [
        layer.register_forward_hook(lambda *_, number=number: calls.append(number))
        for number, layer in enumerate(encoder.model.base_model.encoder.layer)
    ]
    try:
        states = LayerStates(encoder, 1)
        calls.clear()
        states(pad_rows(ROWS, 0))
        assert calls == [0]
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize("name", sorted(CONFIGS))
@torch.no_grad()
def test_other_architectures(name):
    encoder = tiny_encoder(name)
    rows = pad_rows(ROWS, 1)
    wanted = encoder(rows, layers=True).layers
    assert wanted is not None
    for layer in range(4):
        states = LayerStates(encoder, layer)
        torch.testing.assert_close(states(rows), wanted[layer])
        # ALBERT's layers are one, which runs three times
        assert (states._next is None) == (layer == 3 or name == "albert")


def test_bfloat16_is_near(model):
    rows = pad_rows(ROWS, 0)
    exact = LayerStates(model[0], 2)(rows)
    rough = LayerStates(model[0], 2, "bfloat16")(rows).float()
    assert not torch.equal(exact, rough)
    torch.testing.assert_close(exact, rough, atol=0.1, rtol=0.1)
