"""What is changed in a model: every change is listed, and computes the same."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from isoglot.errors import ModelError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.layers import fuse_qkv
from isoglot.models.optimizations import OPTIMIZATIONS, describe_model
from tests.models.tiny import (
    ARCHITECTURES,
    mixed_rows,
    relative,
    saved_model,
    states_and_gradients,
    tiny_encoder,
    tiny_model,
)


def test_a_model_says_what_is_changed(tmp_path):
    folder = saved_model(tmp_path, "xlm-r")
    found = describe_model(folder)
    assert (found.architecture, found.num_layers) == ("XLMRobertaForMaskedLM", 3)
    layers = {one.optimization.name: one.num_layers for one in found.optimizations}
    assert layers == {
        "packed attention": 3,
        "attention dropout off": 3,
        "LM head at target positions": 1,
        "frozen pooler": 0,
        "hashed dropout": 10,
        "deterministic embedding": 3,
        "norm dtype": 7,
        "fused QKV": 3,
    }
    settings = ModelConfig(init_from=folder, freeze="body", norm_dtype="float32", fuse_qkv=False)
    names = {one.optimization.name for one in describe_model(folder, settings).optimizations}
    assert names == {one.name for one in OPTIMIZATIONS} - {"norm dtype", "fused QKV"}


@pytest.mark.parametrize(
    ("architecture", "compiled"),
    # compiled, one of each way to name them is enough
    [*((name, False) for name in ARCHITECTURES), ("xlm-r", True), ("eurobert", True)],
)
def test_fused_qkv_changes_nothing(architecture, compiled):
    layers = 1 if compiled else 3
    plain = tiny_encoder(architecture, layers=layers).double()
    fused = tiny_encoder(architecture, layers=layers, fuse_qkv=True).double()
    assert plain.state_dict().keys() == fused.state_dict().keys()
    if compiled:
        torch.compiler.reset()
        fused.compile(backend="aot_eager", fullgraph=True)
    expected, found = states_and_gradients(plain), states_and_gradients(fused)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-8, atol=1e-10)


def test_every_layer_of_attention_is_found():
    counts = {name: fuse_qkv(tiny_model(name)) for name in ARCHITECTURES}
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
    for fused in (False, True):
        tiny_encoder("xlm-r", fuse_qkv=fused)(mixed_rows()[1])
        numbers.append(len(products))
        products.clear()
    assert numbers[0] - numbers[1] == 2 * 3


def test_a_copy_has_products_of_its_own():
    encoder = tiny_encoder("xlm-r", fuse_qkv=True)
    rows = mixed_rows()[1]
    other = copy.deepcopy(encoder)
    with torch.no_grad():
        before = encoder(rows).hidden
        for weight in encoder.parameters():
            weight.zero_()
        assert torch.equal(other(rows).hidden, before)


def test_an_input_of_its_own_is_heeded():
    model = tiny_model("bert")
    fuse_qkv(model)
    attention = model.base_model.encoder.layer[0].attention.self
    here, there = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    attention.query(here)
    for layer in (attention.key, attention.value):
        torch.testing.assert_close(layer(there), there @ layer.weight.T + layer.bias)
    assert attention.key.group.outputs == (), "nothing is kept"


def test_layers_of_which_some_have_a_bias_stay_apart():
    model = tiny_model("bert")
    attention = model.base_model.encoder.layer[0].attention.self
    attention.key.bias = None
    assert fuse_qkv(model) == 2


@pytest.mark.parametrize("architecture", ["xlm-r", "eurobert", "modernbert"])
def test_without_mixed_precision_they_are_the_same_norms(architecture):
    wide = states_and_gradients(tiny_encoder(architecture, norm_dtype="float32"))
    narrow = states_and_gradients(tiny_encoder(architecture, norm_dtype="bf16"))
    assert all(map(torch.equal, wide, narrow))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_with_it_they_lose_little_more_than_the_products(architecture):
    exact = states_and_gradients(tiny_encoder(architecture, norm_dtype="float32"))
    wide = states_and_gradients(tiny_encoder(architecture, norm_dtype="float32"), bf16=True)
    narrow = states_and_gradients(tiny_encoder(architecture, norm_dtype="bf16"), bf16=True)
    for ours, theirs, reference in zip(narrow, wide, exact, strict=True):
        assert relative(ours, reference) < 3 * relative(theirs, reference)


def test_what_a_layer_reads_is_bf16():
    encoder = tiny_encoder("xlm-r", norm_dtype="bf16")
    read = []
    encoder.model.base_model.encoder.layer[1].register_forward_pre_hook(
        lambda _, inputs: read.append(inputs[0].dtype)
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        encoder(mixed_rows()[1])
    assert read == [torch.bfloat16]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_attention_dropout_is_off_and_hidden_dropout_as_asked(tmp_path, architecture):
    folder = saved_model(tmp_path, architecture)
    if architecture == "eurobert":
        with pytest.raises(ModelError, match="no dropout of hidden states"):
            Encoder.from_pretrained(folder, ModelConfig(init_from=folder, dropout=0.25))
        return
    encoder = Encoder.from_pretrained(folder, ModelConfig(init_from=folder, dropout=0.25))
    kinds = {
        module.p: name for name, module in encoder.named_modules() if isinstance(module, nn.Dropout)
    }
    assert kinds.keys() <= {0.0, 0.25}
    assert 0.25 in kinds
    _, rows = mixed_rows()
    encoder.train()
    assert not torch.equal(encoder(rows).hidden, encoder(rows).hidden)
    still = Encoder.from_pretrained(folder, ModelConfig(init_from=folder, dropout=0.0)).train()
    assert torch.equal(still(rows).hidden, still(rows).hidden)


def test_unused_pooler_is_frozen():
    model = tiny_model("bert")
    model.bert.pooler = nn.Linear(2, 2)
    encoder = Encoder(model, ModelConfig())
    frozen = {name for name, weight in encoder.named_parameters() if not weight.requires_grad}
    assert frozen == {"model.bert.pooler.weight", "model.bert.pooler.bias"}
