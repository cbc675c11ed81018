"""The sentence vectors that a model folder gives its users: pooling, projection, normalization.

A sentence-transformers folder says them in modules.json, and a run may have such a folder beside
its model (`RUN/model`, `RUN/sentence-transformers`). Any other folder gives the mean state of the
last layer, which sentence-transformers takes for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from torch import Tensor

from isoglot import json_text
from isoglot.errors import ModelError
from isoglot.evaluation.settings import Pooling

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "sentence-transformers"
"""Folder of a run, beside its model."""
_LENGTHS = "sentence_bert_config.json"
_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
}
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "Identity": lambda vectors: vectors,
    "ReLU": F.relu,
    "Tanh": F.tanh,
    "GELU": F.gelu,
}


@dataclass(frozen=True, slots=True)
class SentenceModule:
    """What is done with the states of the last layer."""

    pooling: Pooling = "mean"
    steps: tuple[Callable[[Tensor], Tensor], ...] = ()
    """Projections and normalizations after the pooling."""
    name: str = "mean of the last layer"
    """In words, for tables."""
    max_length: int | None = None
    """Tokens at which sentence-transformers cuts a text; none: the model's positions. Scores of
    tasks are computed without it."""

    @property
    def is_plain(self) -> bool:
        """Whether the vectors are the mean of the last layer."""
        return self.pooling == "mean" and not self.steps

    def __call__(self, pooled: Tensor) -> Tensor:
        """(N, D) sentence vectors from (N, D) pooled states."""
        for step in self.steps:
            pooled = step(pooled)
        return pooled


def exported_vectors(folder: Path) -> SentenceModule:
    """The sentence vectors of a model folder; a module that cannot be read is refused by name."""
    place = _place(folder)
    if place is None:
        return SentenceModule()
    pooling: Pooling = "mean"
    steps: list[Callable[[Tensor], Tensor]] = []
    names: list[str] = []
    for module in _read(place / "modules.json"):
        kind, where = str(module["type"]).rpartition(".")[2], place / str(module["path"])
        match kind:
            case "Transformer":
                continue
            case "Pooling":
                pooling = _pooling(where / "config.json")
            case "Normalize":
                steps.append(_unit)
            case "Dense":
                steps.append(_dense(where))
                names.append("projected")
            case _:
                raise ModelError(
                    f"{place / 'modules.json'}: has a module {kind}, which cannot be scored. Score "
                    "the encoder alone: copy the folder without modules.json."
                )
    read = "first token" if pooling == "cls" else "mean"
    words = ", ".join([f"{read} of the last layer", *dict.fromkeys(names)])
    return SentenceModule(pooling, tuple(steps), words, _max_length(place))


def module_files(folder: Path) -> list[Path]:
    """The files that decide what is done with the states, sorted."""
    place = _place(folder)
    if place is None:
        return []
    inside = [*place.glob("*/config.json"), *place.glob("*/model.safetensors")]
    return sorted([place / "modules.json", place / _LENGTHS, *inside])


def _place(folder: Path) -> Path | None:
    """The sentence-transformers folder of a model folder: itself, or that of its run.

    One that holds the encoder up to a lower layer only is another model, to be scored by itself.
    """
    if (folder / "modules.json").is_file():
        return folder
    beside = folder.parent / FOLDER
    if folder.name != "model" or not (beside / "modules.json").is_file():
        return None
    return beside if _num_layers(beside) == _num_layers(folder) else None


def _num_layers(folder: Path) -> object:
    file = folder / "config.json"
    return _read(file).get("num_hidden_layers") if file.is_file() else None


def _max_length(place: Path) -> int | None:
    file = place / _LENGTHS
    length = _read(file).get("max_seq_length") if file.is_file() else None
    return length if isinstance(length, int) and length > 0 else None


def _unit(vectors: Tensor) -> Tensor:
    return F.normalize(vectors, dim=-1)


def _pooling(file: Path) -> Pooling:
    settings = _read(file)
    named = settings.get("pooling_mode")
    chosen = [
        name for name, on in settings.items() if name.startswith("pooling_mode_") and on is True
    ]
    chosen = (
        [f"pooling_mode_{named}_tokens".replace("cls_tokens", "cls_token")] if named else chosen
    )
    if len(chosen) != 1 or chosen[0] not in _POOLINGS:
        raise ModelError(
            f"{file}: pools by {', '.join(chosen) or 'nothing'}, and only the first token and the "
            "mean can be scored."
        )
    return _POOLINGS[chosen[0]]


def _dense(folder: Path) -> Callable[[Tensor], Tensor]:
    from safetensors.torch import load_file

    name = str(_read(folder / "config.json")["activation_function"]).rpartition(".")[2]
    if name not in _ACTIVATIONS:
        raise ModelError(f"{folder / 'config.json'}: the activation {name} cannot be scored.")
    weights = load_file(folder / "model.safetensors")
    weight, bias = weights["linear.weight"].float(), weights.get("linear.bias")
    bias = None if bias is None else bias.float()
    return lambda vectors: _ACTIVATIONS[name](F.linear(vectors.float(), weight, bias))


def _read(file: Path) -> Any:
    try:
        return json_text.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{file}: cannot be read ({error}). Export the model again.") from error
