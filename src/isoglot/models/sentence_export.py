"""Export an encoder with its pooling and projection as a sentence-transformers folder.

Reads a plain Hugging Face folder and the head of an objective; gives a folder that
`SentenceTransformer(path)` loads, whose vectors are those that were contrasted in training:

    modules.json  config.json  model.safetensors  tokenizer files  1_Pooling/  2_Normalize/  ...

The format is that of sentence-transformers 2.2 and later; the package itself is not needed here.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch import nn

from isoglot.atomic import replace_folder
from isoglot.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

_IDENTITY, _RELU = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.ReLU"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceHead:
    """The layers between the encoder's final states and a sentence vector."""

    pooling: Literal["cls", "mean"]
    normalize: Literal["before", "after", "none"] = "none"
    """Where vectors are normalized to length 1: before the layers, after them, or not at all."""
    layers: tuple[nn.Linear, ...] = ()
    """Linear layers, with a ReLU between any two."""


def export_sentence_transformers(
    model: Path, folder: Path, head: SentenceHead, *, max_length: int
) -> None:
    """Write the folder, replacing an earlier one there.

    Args:
        model: a plain Hugging Face folder, which is copied.
        folder: the sentence-transformers folder.
        head: pooling, normalization and projection.
        max_length: sentences are truncated to this number of tokens.
    """
    if folder.exists() and not (folder / "modules.json").is_file():
        raise ModelError(
            f"{folder} exists and is no sentence-transformers folder. Move it away and run again."
        )
    with replace_folder(folder) as new:
        shutil.copytree(model, new, dirs_exist_ok=True)
        _write(new / "sentence_bert_config.json", max_seq_length=max_length)
        width = json.loads((model / "config.json").read_text(encoding="utf-8"))["hidden_size"]
        types = ["Transformer", *_write_modules(new, head, width)]
        modules = [
            {
                "idx": number,
                "name": str(number),
                "path": f"{number}_{name}" if number else "",
                "type": f"sentence_transformers.models.{name}",
            }
            for number, name in enumerate(types)
        ]
        (new / "modules.json").write_text(json.dumps(modules, indent=2), encoding="utf-8")
        # training compared dot products, which are cosines where vectors have length 1
        similarity = "dot" if head.layers and head.normalize != "after" else "cosine"
        _write(new / "config_sentence_transformers.json", similarity_fn_name=similarity)


def _write_modules(folder: Path, head: SentenceHead, width: int) -> list[str]:
    """Write each module after the encoder into a folder of its own; gives their types."""
    from safetensors.torch import save_file

    types = ["Pooling"]
    _write(
        folder / "1_Pooling" / "config.json",
        word_embedding_dimension=width,
        pooling_mode_cls_token=head.pooling == "cls",
        pooling_mode_mean_tokens=head.pooling == "mean",
        pooling_mode_max_tokens=False,
    )
    if head.normalize == "before":
        types.append("Normalize")
    for number, layer in enumerate(head.layers, 1):
        types.append("Dense")
        dense = folder / f"{len(types)}_Dense"
        _write(
            dense / "config.json",
            in_features=layer.in_features,
            out_features=layer.out_features,
            bias=layer.bias is not None,
            activation_function=_IDENTITY if number == len(head.layers) else _RELU,
        )
        weights = {
            f"linear.{n}": w.detach().cpu().contiguous() for n, w in layer.named_parameters()
        }
        save_file(weights, dense / "model.safetensors")
    if head.normalize == "after":
        types.append("Normalize")
    for number, name in enumerate(types, 1):
        (folder / f"{number}_{name}").mkdir(exist_ok=True)
    return types


def _write(file: Path, **content: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=2), encoding="utf-8")
