"""Export an encoder with its pooling and projection as a sentence-transformers folder.

Reads a plain Hugging Face folder and a head, that of a contrastive objective or a pooling alone;
gives a folder that `SentenceTransformer(path)` and `AutoModel` load with no missing and no
unexpected weight, whose vectors are those that were contrasted in training:

    modules.json  config.json  model.safetensors  tokenizer files  1_Pooling/  2_Normalize/  ...

The format is that of sentence-transformers 2.2 and later; the package itself is not needed here.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn
from transformers import AutoModel

from isoglot.atomic import replace_folder
from isoglot.errors import ModelError
from isoglot.models import language_embeddings
from isoglot.models.export import TOKENIZER_FILES
from isoglot.models.fold import fold_into_positions
from isoglot.models.loading import check_encoder_weights, load_config, load_weights
from isoglot.models.truncate import truncate

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

    def describe(self) -> str:
        """The way from states to a vector, for a card."""
        parts = ["the state of the first token" if self.pooling == "cls" else "the mean state"]
        parts += ["normalized"] * (self.normalize == "before")
        widths = [layer.out_features for layer in self.layers]
        parts += [f"projected to {' and '.join(map(str, widths))} dimensions"] * bool(widths)
        parts += ["normalized"] * (self.normalize == "after")
        return ", ".join(parts)


def export_sentence_transformers(
    model: Path,
    folder: Path,
    head: SentenceHead,
    *,
    max_length: int,
    card: str | None = None,
    num_layers: int | None = None,
) -> None:
    """Write the folder, replacing an earlier one there.

    Args:
        model: a plain Hugging Face folder, whose encoder and tokenizer are written.
        folder: the sentence-transformers folder.
        head: pooling, normalization and projection.
        max_length: sentences are truncated to this number of tokens.
        card: README.md; none: that of the model's folder.
        num_layers: layers of the encoder that are kept, from the first on; none: all.
    """
    if folder.exists() and not (folder / "modules.json").is_file():
        raise ModelError(
            f"{folder} exists and is not a sentence-transformers folder. Move it away and run "
            "again."
        )
    with replace_folder(folder) as new:
        base = load_sentence_encoder(model)
        base = base if num_layers is None else truncate(base, num_layers)
        base.save_pretrained(new)
        for name in (*TOKENIZER_FILES, "README.md", "recipe.yaml"):
            if (model / name).is_file():
                shutil.copyfile(model / name, new / name)
        if card is not None:
            (new / "README.md").write_text(card, encoding="utf-8")
        _write(new / "sentence_bert_config.json", max_seq_length=max_length)
        types = ["Transformer", *_write_modules(new, head, int(base.config.hidden_size))]
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


def sentence_limitations(model: Path) -> list[str]:
    """Sentences on what a sentence-transformers folder of a model folder cannot hold."""
    if not language_embeddings.languages_of(model):
        return []
    limitation = (
        "The model was trained with a language embedding on every token. sentence-transformers "
        "does not know the language of a text, so every text gets the mean of the languages' "
        "embeddings, folded into the position embeddings: vectors differ from those of `isoglot "
        "evaluate` on the Hugging Face folder."
    )
    return [limitation]


def load_sentence_encoder(model: Path) -> Any:
    """The encoder of a sentence-transformers folder: all weights that transformers' class has.

    Language embeddings on all tokens are folded into the positions, as their mean.
    """
    base, missing, _ = load_weights(
        AutoModel, str(model), "an encoder", config=load_config(str(model))
    )
    check_encoder_weights(str(model), base, missing)
    # the pooler: masked language models have none, nothing here reads it, and transformers would
    # report it as missing
    for name in missing:
        weight = base.get_parameter(name)
        with torch.no_grad():
            weight.copy_(torch.eye(*weight.shape) if weight.ndim == 2 else torch.zeros_like(weight))
    mean = language_embeddings.mean_of(model)
    if mean is not None:
        fold_into_positions(base, mean)
    language_embeddings.describe(base.config, (), used_on=None)
    return base.eval()


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
