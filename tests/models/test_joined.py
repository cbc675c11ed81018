"""Queries, keys and values of one product are those of three."""

from __future__ import annotations

import copy

import pytest
import torch

from isoglot.models.joined import join_projections
from tests.models.there_and_back import states_and_gradients
from tests.models.tiny import ARCHITECTURES, tiny_encoder, tiny_model
from tests.models.worked_rows import mixed_rows


@pytest.mark.parametrize(
    ("architecture", "compiled"),
    # compiled, one of each way to name them is enough
    [*((name, False) for name in ARCHITECTURES), ("xlm-r", True), ("eurobert", True)],
)
def test_joined_projections_change_nothing(architecture, compiled):
    apart = tiny_encoder(architecture).double()
    joined = tiny_encoder(architecture, projections="joined").double()
    assert apart.state_dict().keys() == joined.state_dict().keys()
    if compiled:
        torch.compiler.reset()
        joined.compile(backend="aot_eager", fullgraph=True)
    expected, found = states_and_gradients(apart), states_and_gradients(joined)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-8, atol=1e-10)


def test_every_layer_of_attention_is_found():
    counts = {name: join_projections(tiny_model(name)) for name in ARCHITECTURES}
    assert counts == {
        "xlm-r": 3,
        "roberta": 3,
        "bert": 3,
        "albert": 1,
        "electra": 3,
        "eurobert": 3,
        "modernbert": 0,
    }


def test_one_product_where_there_were_three(monkeypatch):
    products = []
    plain = torch.nn.functional.linear

    def counted(*given):
        products.append(1)
        return plain(*given)

    monkeypatch.setattr(torch.nn.functional, "linear", counted)
    numbers = []
    for projections in ("apart", "joined"):
        tiny_encoder("xlm-r", projections=projections)(mixed_rows()[1])
        numbers.append(len(products))
        products.clear()
    assert numbers[0] - numbers[1] == 2 * 3


def test_a_copy_has_products_of_its_own():
    encoder = tiny_encoder("xlm-r", projections="joined")
    rows = mixed_rows()[1]
    other = copy.deepcopy(encoder)
    with torch.no_grad():
        before = encoder(rows).hidden
        for weight in encoder.parameters():
            weight.zero_()
        assert torch.equal(other(rows).hidden, before)


def test_an_input_of_its_own_is_heeded():
    model = tiny_model("bert")
    join_projections(model)
    attention = model.base_model.encoder.layer[0].attention.self
    here, there = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    attention.query(here)
    for layer in (attention.key, attention.value):
        torch.testing.assert_close(layer(there), there @ layer.weight.T + layer.bias)
    assert attention.key.forward.func.__self__.outputs == (), "nothing is kept"


def test_layers_of_which_some_have_a_bias_stay_apart():
    model = tiny_model("bert")
    attention = model.base_model.encoder.layer[0].attention.self
    attention.key.bias = None
    assert join_projections(model) == 2
