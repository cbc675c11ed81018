"""The file of trained objective heads in a model folder: projections and relation embeddings.

An encoder alone cannot be asked what its objectives were trained for: which description belongs to
a masked name, which object to a subject and a relation (XLM-K). `export_encoder` writes the heads:

    objective_heads.safetensors
        OBJECTIVE.WEIGHT     such as entity.query_head.layers.0.weight, entailment.relations.weight
        metadata: heads      JSON: the settings of each objective, and the SHA-256 of all tensors
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from isoglot import json_text
from isoglot.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "objective_heads.safetensors"
_METADATA = "heads"


@dataclass(frozen=True, slots=True)
class ObjectiveHead:
    """The trained head of one objective."""

    settings: dict[str, Any]
    """What its use needs to know, as JSON: the layer and pooling that it reads, its relations."""
    tensors: dict[str, Tensor]
    """The objective's weights, named as in its module."""


def save(folder: Path, heads: Mapping[str, ObjectiveHead]) -> None:
    """Write the heads of these objectives, if there are any."""
    if not heads:
        return
    tensors = {
        f"{objective}.{name}": tensor.detach().cpu().contiguous()
        for objective, head in heads.items()
        for name, tensor in head.tensors.items()
    }
    settings = {objective: head.settings for objective, head in heads.items()}
    content = {"objectives": settings, "sha256": _digest(tensors)}
    # one key: the order of several is not the same in every file
    metadata = {_METADATA: json.dumps(content, sort_keys=True, ensure_ascii=False)}
    save_file(tensors, folder / FILE, metadata=metadata)


def load(folder: Path) -> dict[str, ObjectiveHead]:
    """Objective -> its head; empty for a folder without the file.

    Raises:
        ModelError: the file is damaged.
    """
    file = folder / FILE
    if not file.is_file():
        return {}
    try:
        with safe_open(file, framework="pt") as saved:
            tensors = {name: saved.get_tensor(name) for name in saved.keys()}  # noqa: SIM118
            content = json_text.parse((saved.metadata() or {})[_METADATA])
        settings: dict[str, dict[str, Any]] = content["objectives"]
        heads = {
            objective: ObjectiveHead(dict(found), _tensors_of(objective, tensors))
            for objective, found in settings.items()
        }
        written = content["sha256"]
    except (SafetensorError, OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise _unreadable(file, str(error)) from error
    if written != _digest(tensors):
        raise _unreadable(file, "its tensors have another SHA-256 than when they were written")
    return heads


def _tensors_of(objective: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    prefix = f"{objective}."
    return {name[len(prefix) :]: tensors[name] for name in tensors if name.startswith(prefix)}


def _unreadable(file: Path, reason: str) -> ModelError:
    return ModelError(
        f"{file} cannot be read ({reason}). Export the model again, or delete the file to use the "
        "encoder without its heads."
    )


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and values."""
    digest = sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.flatten().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
