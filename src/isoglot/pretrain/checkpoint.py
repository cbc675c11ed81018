"""Checkpoints: everything a run needs to go on bit for bit, in a folder that is whole or not there.

    checkpoints/step-00001000/
        weights.safetensors      encoder, heads, queues, momentum weights: the trainee's state
        optimizer.safetensors    moments
        state.json               step, stage, cursor, corpus fingerprint, hashes of the files above

A folder is written beside its place, synced and renamed, so a crash or a full disk leaves the one
before untouched. It is verified when read; a damaged one is passed over for the newest sound one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from isoglot.errors import CheckpointError, require
from isoglot.types import Cursor, Draw

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor, nn

FORMAT = 1
_WEIGHTS, _OPTIMIZER, _STATE = "weights.safetensors", "optimizer.safetensors", "state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """When checkpoints are written."""

    every: int = 1000
    """Steps between two checkpoints; the last step always gets one."""
    keep: int = 2
    """How many of the newest to keep."""

    def __post_init__(self) -> None:
        require(self.every >= 1, "checkpoints.every must be 1 or more")
        require(self.keep >= 1, "checkpoints.keep must be 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a checkpoint says beside its tensors."""

    stage: int
    """The stage that was running, from 0."""
    step: int
    """Steps taken in that stage."""
    total_steps: int
    """Steps taken in all stages; names the folder."""
    tokens: int
    """Tokens trained on so far."""
    cursor: Cursor
    corpus: str
    """Fingerprint of the corpus."""
    recipe: str
    """Fingerprint of what in the recipe decides the numbers."""


def save(
    folder: Path, state: State, trainee: nn.Module, optimizer: torch.optim.Optimizer, *, keep: int
) -> Path:
    """Write a checkpoint below `folder`, then remove all but the newest `keep`."""
    place = folder / f"step-{state.total_steps:08d}"
    scratch = folder / f".writing-{place.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        weights, aliases = _unshared(trainee.state_dict())
        moments, scalars = _flatten(optimizer, trainee)
        save_file(weights, scratch / _WEIGHTS)
        save_file(moments, scratch / _OPTIMIZER)
        content = {
            "format": FORMAT,
            **asdict(state),
            "aliases": aliases,
            "optimizer": scalars,
            "sha256": {name: _sha256(scratch / name) for name in (_WEIGHTS, _OPTIMIZER)},
        }
        text = json.dumps(content)
        digest = hashlib.sha256(text.encode()).hexdigest()
        (scratch / _STATE).write_text(f"{digest}\n{text}\n", encoding="utf-8")
        for file in scratch.iterdir():
            _sync(file)
        _sync(scratch)
        shutil.rmtree(place, ignore_errors=True)
        scratch.rename(place)
        _sync(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(scratch, ignore_errors=True)
        before = newest(folder)
        kept = f"{before} is untouched" if before else "there is no earlier one"
        raise CheckpointError(
            f"{place} could not be written: {error}. Free space there and resume; {kept}."
        ) from error
    # later ones are of a future that was given up when an earlier one was resumed
    for later in (other for other in _folders(folder) if other.name > place.name):
        shutil.rmtree(later, ignore_errors=True)
    for old in _folders(folder)[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    return place


class Checkpoint:
    """A checkpoint on disk, known to be sound."""

    def __init__(self, place: Path) -> None:
        """Verify it; raises a `CheckpointError` if it is damaged."""
        self.place = place
        self._content = _verified(place)

    @property
    def state(self) -> State:
        """What it says beside its tensors."""
        content, cursor = self._content, self._content["cursor"]
        return State(
            stage=content["stage"],
            step=content["step"],
            total_steps=content["total_steps"],
            tokens=content["tokens"],
            cursor=Cursor(
                step=cursor["step"],
                counters=tuple(cursor["counters"]),
                pending=tuple(Draw(*draw) for draw in cursor["pending"]),
            ),
            corpus=content["corpus"],
            recipe=content["recipe"],
        )

    def restore(self, trainee: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Put its tensors into the trainee and the optimizer."""
        weights = load_file(self.place / _WEIGHTS)
        for alias, kept in self._content["aliases"].items():
            weights[alias] = weights[kept]
        try:
            trainee.load_state_dict(weights)
        except RuntimeError as error:
            raise CheckpointError(f"{self.place} was written by another model: {error}") from error
        _restore(optimizer, trainee, load_file(self.place / _OPTIMIZER), self._content["optimizer"])


def newest_sound(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole; warns of each damaged one that it passes over."""
    for place in _folders(folder):
        try:
            return Checkpoint(place)
        except CheckpointError as error:
            warn(f"{error} Going back to the checkpoint before it.")
    return None


def newest(folder: Path) -> Path | None:
    """The newest checkpoint, whole or not."""
    return next(iter(_folders(folder)), None)


def _folders(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True)


def _verified(place: Path) -> dict[str, Any]:
    """The content of state.json, once it and the files it names are known to be sound."""
    file = place / _STATE
    try:
        digest, text = file.read_text(encoding="utf-8").split("\n", 1)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}.") from error
    text = text.removesuffix("\n")
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise CheckpointError(f"{file} is damaged: its SHA-256 is not the one noted.")
    content: dict[str, Any] = json.loads(text)
    if content["format"] != FORMAT:
        raise CheckpointError(
            f"{place} has format {content['format']} and this version reads {FORMAT}: "
            f"resume it with the isoglot that wrote it."
        )
    for name, expected in content["sha256"].items():
        if not (place / name).is_file() or _sha256(place / name) != expected:
            raise CheckpointError(f"{place / name} is damaged: its SHA-256 is not the one noted.")
    return content


def _unshared(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors without their doubles (tied embeddings), and which name stands for which."""
    seen: dict[int, str] = {}
    kept: dict[str, Tensor] = {}
    aliases: dict[str, str] = {}
    for name, tensor in tensors.items():
        if tensor.numel() and tensor.data_ptr() in seen:
            aliases[name] = seen[tensor.data_ptr()]
        else:
            seen[tensor.data_ptr()] = name
            kept[name] = tensor.detach().contiguous()
    return kept, aliases


def _flatten(
    optimizer: torch.optim.Optimizer, trainee: nn.Module
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimizer's state by the names of its weights: tensors, and everything else."""
    names = {id(weight): name for name, weight in trainee.named_parameters()}
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Any] = {}
    for weight, state in optimizer.state.items():
        for key, value in state.items():
            name = f"{names[id(weight)]}|{key}"
            if torch.is_tensor(value):
                tensors[name] = value.detach().contiguous()
            else:
                scalars[name] = value
    groups = [
        {k: v for k, v in group.items() if k != "params" and isinstance(v, int | float | bool)}
        for group in optimizer.param_groups
    ]
    return tensors, {"state": scalars, "groups": groups}


def _restore(
    optimizer: torch.optim.Optimizer,
    trainee: nn.Module,
    tensors: dict[str, Tensor],
    scalars: dict[str, Any],
) -> None:
    found: dict[str, dict[str, Any]] = {}
    for name, value in {**tensors, **scalars["state"]}.items():
        weight, _, key = name.rpartition("|")
        found.setdefault(weight, {})[key] = value
    names = {id(weight): name for name, weight in trainee.named_parameters()}
    ordered = [names[id(w)] for group in optimizer.param_groups for w in group["params"]]
    groups = optimizer.state_dict()["param_groups"]
    for group, saved in zip(groups, scalars["groups"], strict=True):
        # settings are the recipe's; only what an optimizer notes down while it runs comes back
        group.update({key: value for key, value in saved.items() if key not in group})
    optimizer.load_state_dict(
        {
            "state": {i: found[name] for i, name in enumerate(ordered) if name in found},
            "param_groups": groups,
        }
    )


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
