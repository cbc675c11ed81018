"""Write an encoder with its pooling and projection as a sentence-transformers folder.

Reads a plain Hugging Face folder and the head on top of it; gives a folder that
`SentenceTransformer(path)` opens, whose vectors are those that were contrasted in training:

    modules.json  config.json  model.safetensors  tokenizer files  1_Pooling/  2_Normalize/  ...

The format is that of sentence-transformers 2.2 and later; the package itself is not needed here.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors.torch import save_file
from torch import nn

from isoglot.errors import ModelError, require

_LINEAR, _RELU = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.ReLU"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportConfig:
    """What a run writes beside the plain Hugging Face folder of its end."""

    every: int = 0
    """Steps between two models kept in along/, to be scored along training; 0 keeps none."""
    sentence_transformers: Literal["no", "pooled", "projected"] = "no"
    """A folder for sentence-transformers: none, of pooled states, or with the projection too."""

    def __post_init__(self) -> None:
        require(self.every >= 0, "export.every must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceHead:
    """What makes one vector of a sentence's final states."""

    pooling: Literal["cls", "mean"]
    normalize: Literal["before", "after", "no"] = "no"
    """Where vectors are brought to length 1: before the layers, after them, or not at all."""
    layers: tuple[nn.Linear, ...] = ()
    """Linear maps, with a ReLU between any two."""


def export_sentences(model: Path, folder: Path, head: SentenceHead, *, max_length: int) -> None:
    """Write the folder, replacing an earlier one there.

    Args:
        model: a plain Hugging Face folder, copied as it is.
        folder: where the sentence-transformers folder will stand.
        head: what stands on top of the encoder.
        max_length: sentences are cut to so many tokens.
    """
    if folder.exists() and not (folder / "modules.json").is_file():
        raise ModelError(
            f"{folder} exists and is no sentence-transformers folder. Move it away and run again."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        written = Path(scratch) / "new"
        shutil.copytree(model, written)
        _write(written / "sentence_bert_config.json", max_seq_length=max_length)
        width = json.loads((model / "config.json").read_text(encoding="utf-8"))["hidden_size"]
        kinds = ["Transformer", *_write_modules(written, head, width)]
        modules = [
            {
                "idx": number,
                "name": str(number),
                "path": f"{number}_{kind}" if number else "",
                "type": f"sentence_transformers.models.{kind}",
            }
            for number, kind in enumerate(kinds)
        ]
        (written / "modules.json").write_text(json.dumps(modules, indent=2), encoding="utf-8")
        # vectors were compared by their dot product; where they have length 1, that is the cosine
        similarity = "dot" if head.layers and head.normalize != "after" else "cosine"
        _write(written / "config_sentence_transformers.json", similarity_fn_name=similarity)
        if folder.exists():
            folder.rename(Path(scratch) / "old")
        written.rename(folder)


def _write_modules(folder: Path, head: SentenceHead, width: int) -> list[str]:
    """Write what follows the encoder, each module into a folder of its own; gives their kinds."""
    kinds = ["Pooling"]
    _write(
        folder / "1_Pooling" / "config.json",
        word_embedding_dimension=width,
        pooling_mode_cls_token=head.pooling == "cls",
        pooling_mode_mean_tokens=head.pooling == "mean",
        pooling_mode_max_tokens=False,
    )
    if head.normalize == "before":
        kinds.append("Normalize")
    for number, layer in enumerate(head.layers, 1):
        kinds.append("Dense")
        place = folder / f"{len(kinds)}_Dense"
        _write(
            place / "config.json",
            in_features=layer.in_features,
            out_features=layer.out_features,
            bias=layer.bias is not None,
            activation_function=_LINEAR if number == len(head.layers) else _RELU,
        )
        weights = {
            f"linear.{n}": w.detach().cpu().contiguous() for n, w in layer.named_parameters()
        }
        save_file(weights, place / "model.safetensors")
    if head.normalize == "after":
        kinds.append("Normalize")
    for number, kind in enumerate(kinds, 1):
        (folder / f"{number}_{kind}").mkdir(exist_ok=True)
    return kinds


def _write(file: Path, **content: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=2), encoding="utf-8")
