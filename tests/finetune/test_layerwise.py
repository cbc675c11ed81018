from __future__ import annotations

import pytest
from transformers import AutoModelForSequenceClassification

from isoglot.finetune.layerwise import depth, parameter_groups
from isoglot.finetune.settings import FinetuneConfig
from tests.models.tiny import CONFIGS

SETTINGS = FinetuneConfig(learning_rate=1.0, layer_decay=0.5, weight_decay=0.1)


@pytest.mark.parametrize("architecture", ["xlm-r", "bert", "electra", "modernbert"])
def test_the_rate_halves_with_each_layer_down(architecture):
    model = AutoModelForSequenceClassification.from_config(CONFIGS[architecture]())
    groups = parameter_groups(model, SETTINGS)
    rate = {id(weight): group["lr"] for group in groups for weight in group["params"]}
    assert sorted(rate) == sorted(id(weight) for weight in model.parameters())
    by_name = {name: rate[id(weight)] for name, weight in model.named_parameters()}
    for name, value in by_name.items():
        for layer in range(3):
            if f"layer.{layer}." in name or f"layers.{layer}." in name:
                assert value == 0.5 ** (3 - layer), name
    embeddings = [value for name, value in by_name.items() if "embeddings." in name]
    heads = [value for name, value in by_name.items() if name.startswith("classifier")]
    assert set(embeddings) == {0.5**4}
    assert set(heads) == {1.0}


def test_xlm_keeps_each_kind_of_part_in_a_list_of_its_own():
    layers, prefix = 3, "transformer."
    for part in ("attentions.0.q_lin", "ffns.0.lin1", "layer_norm1.0", "layer_norm2.0"):
        assert depth(f"transformer.{part}.weight", prefix, layers) == layers, part
    for part in ("embeddings", "position_embeddings", "layer_norm_emb"):
        assert depth(f"transformer.{part}.weight", prefix, layers) == layers + 1, part


def test_only_matrices_decay():
    model = AutoModelForSequenceClassification.from_config(CONFIGS["xlm-r"]())
    for group in parameter_groups(model, SETTINGS):
        dimensions = {weight.ndim >= 2 for weight in group["params"]}
        assert dimensions == {group["weight_decay"] == 0.1}
