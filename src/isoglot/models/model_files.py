"""What a model folder may hold, checked before transformers reads it.

No code that comes with a model is run (`trust_remote_code=False` wherever transformers loads
something), and no pickle is read: weights are safetensors. A config that would make transformers
read something else, or more than its weights can fill, is refused in one sentence.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import safe_open

from isoglot import json_text
from isoglot.errors import ModelError, library_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

_CONVERT = (
    "If you trust it, convert it to safetensors once: AutoModelForMaskedLM.from_pretrained(FOLDER)"
    ".save_pretrained(FOLDER)."
)
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_REFUSED_KEYS = {
    "quantization_config": "its weights are quantized. Save them in float32 or bf16",
    "transformers_weights": "it names its own file of weights. Rename that to model.safetensors",
}
"""Keys of config.json that change how weights are read, and the fix."""
_IMPLEMENTATIONS = ("attn_implementation", "_attn_implementation", "experts_implementation")
"""Keys of config.json that may name code of the Hugging Face hub."""
_POSITIVE = (
    "num_hidden_layers",
    "num_attention_heads",
    "hidden_size",
    "vocab_size",
    "max_position_embeddings",
    "intermediate_size",
)
_MAX_LAYERS = 256
"""Layers that a config may have without as many weights: ALBERT's layers share theirs."""


def check_model_files(folder: Path) -> None:
    """Refuse a folder whose weights are not safetensors, or whose config asks for more."""
    if (folder / "adapter_config.json").is_file():
        raise ModelError(
            f"{folder} holds an adapter (adapter_config.json), not a whole model. Merge it into "
            "its base model with peft's merge_and_unload, and save that."
        )
    pickles = [file.name for pattern in _PICKLES for file in sorted(folder.glob(pattern))]
    if pickles and not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{folder} has its weights in {pickles[0]}, which could run code; only safetensors are "
            f"read. {_CONVERT}"
        )
    for index in sorted(folder.glob("*.index.json")):
        check_index(index)
    config = folder / "config.json"
    if config.is_file():
        _check_config(folder, read_json(config))


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object of a model folder."""
    with library_errors(ModelError, f"{file} is not readable JSON"):
        content = json_text.parse(file.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ModelError(f"{file} holds no JSON object. Save the model again.")
    return content


def check_index(index: Path) -> None:
    """Refuse an index of weights that names anything but safetensors files of its folder."""
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ModelError(f"{index} has no weight_map of file names. Save the model again.")
    for name in sorted(set(names.values())):
        if not name.endswith(".safetensors"):
            raise ModelError(
                f"{index} names {name}, which is not safetensors and could run code. {_CONVERT}"
            )
        if Path(name).name != name or not (index.parent / name).is_file():
            raise ModelError(
                f"{index} names {name}, which is not in the folder. Copy the missing file, or "
                "save the model again."
            )


def tensor_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor in a folder's model files, from their headers."""
    return {
        name: tuple(saved.get_slice(name).get_shape())
        for saved in _open_files(folder)
        for name in saved.keys()  # noqa: SIM118 (no mapping)
    }


def read_tensors(folder: Path, part: str) -> dict[str, Tensor]:
    """The tensors of a folder's model files whose name has this part between its dots."""
    return {
        name: saved.get_tensor(name)
        for saved in _open_files(folder)
        for name in saved.keys()  # noqa: SIM118
        if part in name.split(".")
    }


def _open_files(folder: Path) -> Iterator[Any]:
    for file in sorted(folder.glob("model*.safetensors")):
        with (
            library_errors(ModelError, f"{file} is not a readable safetensors file"),
            safe_open(file, framework="pt") as saved,
        ):
            yield saved


def _check_config(folder: Path, config: dict[str, Any]) -> None:
    for key, fix in _REFUSED_KEYS.items():
        if config.get(key) is not None:
            raise ModelError(f"{folder}/config.json has {key}: {fix}, and remove the key.")
    for key in _IMPLEMENTATIONS:
        if "/" in str(config.get(key)):
            raise ModelError(
                f"{folder}/config.json names code of the Hugging Face hub ({key}: {config[key]}), "
                "which is never run. Remove the key."
            )
    shapes = tensor_shapes(folder)
    if not shapes:
        return
    total = sum(math.prod(shape) for shape in shapes.values())
    _check_size(folder, config, total=total, num_tensors=len(shapes))


def _check_size(folder: Path, config: dict[str, Any], *, total: int, num_tensors: int) -> None:
    """Refuse a config whose model would be larger than the weights: building it could take hours.

    Only sizes that every architecture stores are compared.
    """
    for half in (config, config.get("encoder"), config.get("decoder")):
        if not isinstance(half, dict):
            continue
        sizes = {key: value for key, value in half.items() if type(value) is int}
        for key in _POSITIVE:
            if sizes.get(key, 1) < 1:
                raise ModelError(
                    f"{folder}/config.json has {key}: {sizes[key]}, which must be 1 or more. Copy "
                    "the model's own config.json."
                )
        width = sizes.get("embedding_size", sizes.get("hidden_size", 1))
        layers, tokens = sizes.get("num_hidden_layers", 1), sizes.get("vocab_size", 1)
        if layers > max(_MAX_LAYERS, num_tensors):
            raise ModelError(
                f"{folder}/config.json has num_hidden_layers: {layers}, and the weights have only "
                f"{num_tensors} tensors. Copy the model's own config.json."
            )
        product = max(tokens * width, width * sizes.get("intermediate_size", 1))
        if product > total:
            raise ModelError(
                f"{folder}/config.json asks for a matrix of {product:,} numbers, and all weights "
                f"together have {total:,}. Copy the model's own config.json."
            )
