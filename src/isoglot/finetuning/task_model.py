"""The model of a task: a folder's encoder under a head of transformers, and what in it is new.

Weights of the encoder that the folder lacks are refused; those of the head are new, and
`load_task_model` says which.

BERT and ALBERT classify the output of a pooler, a dense layer on [CLS] that BERT trains by
next-sentence prediction. A masked language model has none, so `pooler: new`, the default,
initializes it whether the folder has one or not: two folders are compared from equal heads. `none`
classifies the [CLS] state itself, by transformers' class for tokens read at the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import nn

from isoglot.errors import ModelError
from isoglot.models.loading import check_encoder_weights, load_weights

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    Pooler = Literal["new", "pretrained", "none"]

_POOLER = "pooler"


class TaskModel(NamedTuple):
    """A model to fine-tune."""

    model: Any
    note: str
    """A sentence that names the new weights, and those of the folder that are not used."""


def load_task_model(folder: Path, auto_class: Any, config: Any, *, pooler: Pooler) -> TaskModel:
    """The folder's encoder with a head, whose new weights torch's random generator initializes."""
    model, new, unused = load_weights(
        auto_class,
        str(folder),
        f"an encoder with a head of {auto_class.__name__}",
        config=config,
        # the folder may have the head of another task, with other labels
        ignore_mismatched_sizes=True,
    )
    check_encoder_weights(str(folder), model, new)
    new |= _initialize_pooler(folder, model, new, pooler)
    return TaskModel(model, _describe(folder, new, unused))


def _initialize_pooler(folder: Path, model: Any, new: Collection[str], pooler: Pooler) -> set[str]:
    """Initialize a pooler and a new classifier from the seed; gives the names of their weights.

    A folder that is already fine-tuned keeps its pooler with its classifier.
    """
    linear = {
        name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)
    }
    own = [name for name in linear if _POOLER in name.split(".")]
    missing = [name for name in own if f"{name}.weight" in new]
    if pooler == "pretrained":
        if missing or not own:
            raise ModelError(
                f"{folder} has no pooler that its classifier reads. Use --set pooler=new, or none."
            )
        return set()
    heads = [name for name in linear if name not in own and f"{name}.weight" in new]
    if not own or not heads:
        return set()
    # a generator of its own: how much the loading drew depends on what the folder has
    generator = torch.Generator().manual_seed(torch.initial_seed())
    for name in (*own, *heads):
        nn.init.normal_(
            linear[name].weight, std=model.config.initializer_range, generator=generator
        )
        nn.init.zeros_(linear[name].bias)
    return {f"{name}.{part}" for name in own for part in ("weight", "bias")}


def _describe(folder: Path, new: Iterable[str], unused: Iterable[str]) -> str:
    parts = [
        f"{', '.join(names)} {what}"
        for names, what in (
            (_modules(new), "newly initialized"),
            (_modules(unused), "of the folder not used"),
        )
        if names
    ]
    return f"{folder}: {'; '.join(parts) or 'all weights are those of the folder'}."


def _modules(weights: Iterable[str]) -> list[str]:
    """The modules of weights, each once: `classifier.dense` for its weight and its bias."""
    return sorted({name.rpartition(".")[0] or name for name in weights})
