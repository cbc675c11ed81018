"""What a model folder may hold: safetensors, and a config that its weights can fill."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoglot.errors import ModelError
from isoglot.models.model_files import (
    check_index,
    check_model_files,
    read_tensors,
    tensor_shapes,
)
from tests.models.tiny import ARCHITECTURES, saved_model


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ordinary_folders_pass(architecture, tmp_path):
    saved_model(tmp_path, architecture)
    check_model_files(tmp_path)
    shapes = tensor_shapes(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    assert shapes == {name: tuple(weight.shape) for name, weight in weights.items()}


def test_weights_in_several_files_pass_and_are_read(tmp_path):
    saved_model(tmp_path, "bert")
    weights = load_file(tmp_path / "model.safetensors")
    names = sorted(weights)
    halves = {"model-00001-of-00002": names[::2], "model-00002-of-00002": names[1::2]}
    for name, keys in halves.items():
        save_file({key: weights[key] for key in keys}, tmp_path / f"{name}.safetensors")
    (tmp_path / "model.safetensors").unlink()
    index = {key: f"{name}.safetensors" for name, keys in halves.items() for key in keys}
    file = tmp_path / "model.safetensors.index.json"
    file.write_text(json.dumps({"metadata": {}, "weight_map": index}))
    check_model_files(tmp_path)
    assert tensor_shapes(tmp_path).keys() == weights.keys()
    found = read_tensors(tmp_path, "intermediate")
    assert found.keys() == {name for name in names if ".intermediate." in name}
    assert all(torch.equal(found[name], weights[name]) for name in found)


def test_pickles_beside_safetensors_are_passed_over_and_alone_refused(tmp_path):
    saved_model(tmp_path, "bert")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    check_model_files(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"in pytorch_model\.bin, which could run code"):
        check_model_files(tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pytorch_model.bin", "is not safetensors and could run code"),
        ("../model.safetensors", "not in the folder"),
        ("other.safetensors", "not in the folder"),
    ],
)
def test_an_index_names_only_safetensors_of_its_folder(tmp_path, name, said):
    folder = tmp_path / "model"
    folder.mkdir()
    save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    file = folder / "model.safetensors.index.json"
    file.write_text(json.dumps({"weight_map": {"x": name}}))
    with pytest.raises(ModelError, match=said):
        check_index(file)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_hidden_layers": 257}, "num_hidden_layers: 257, and the weights have only"),
        ({"num_hidden_layers": 0}, "num_hidden_layers: 0, which must be 1 or more"),
        ({"vocab_size": 10**9}, r"a matrix of 32,000,000,000 numbers"),
        ({"intermediate_size": 10**7}, r"a matrix of 320,000,000 numbers"),
        ({"attn_implementation": "some/kernel"}, r"attn_implementation: some/kernel"),
        ({"quantization_config": {"bits": 4}}, "its weights are quantized"),
        ({"transformers_weights": "adapter_model.bin"}, "names its own file of weights"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(tmp_path, changes, said):
    saved_model(tmp_path, "bert")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(ModelError, match=said):
        check_model_files(tmp_path)


def test_more_layers_than_usual_need_as_many_weights(tmp_path):
    """ALBERT's layers share theirs; 256 layers of any model are possible."""
    saved_model(tmp_path, "albert")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 256}))
    check_model_files(tmp_path)


def test_an_adapter_is_no_model(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="holds an adapter"):
        check_model_files(tmp_path)
