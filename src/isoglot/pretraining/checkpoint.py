"""Checkpoints: everything that a run needs to resume bit for bit.

    checkpoints/step-00001000/
        weights.safetensors      encoder, heads, queues, momentum encoders
        optimizer.safetensors    moments of the optimizer
        state.json               step, stage, cursor, fingerprints, SHA-256 of the files above

A checkpoint is written to a temporary folder, flushed to disk and renamed, so a crash or a full
disk leaves the one before untouched. It is verified when it is read (`_verify`); a damaged one is
skipped with a warning; a run whose checkpoints are all damaged is refused.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.distributed.tensor import DTensor, distribute_tensor

from isoglot import json_text
from isoglot.atomic import replace_folder
from isoglot.errors import CheckpointError
from isoglot.pretraining.early_stopping import HeldoutProgress
from isoglot.ranges import NumSteps, Range, check_ranges
from isoglot.types import Cursor, Draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch import Tensor, nn


FORMAT = 2
_WEIGHTS, _OPTIMIZER, _STATE = "weights.safetensors", "optimizer.safetensors", "state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """When checkpoints are written."""

    every_steps: NumSteps = 1000
    """Steps between two checkpoints; the last step always gets one."""
    keep: Annotated[int, Range(1, 10**6)] = 2
    """How many of the newest to keep; the best one is kept besides, where a run looks for it."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainState:
    """Progress of a run: what a checkpoint holds beside its tensors."""

    stage: int
    """The stage that was running, from 0."""
    step: int
    """Steps taken in that stage."""
    total_steps: int
    """Steps taken in all stages; names the folder."""
    tokens: int
    """Tokens trained on so far."""
    cursor: Cursor
    corpus_fingerprint: str
    """Of the data that the streams read."""
    recipe_fingerprint: str
    """Fingerprint of the settings that decide the numbers."""
    heldout: HeldoutProgress | None = None
    """The best validation so far, where a run looks for it."""

    def content(self) -> dict[str, Any]:
        """What state.json has of it."""
        content = asdict(self)
        if self.heldout is None:
            del content["heldout"]
        return content


def save(
    folder: Path,
    state: TrainState,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    keep: int,
    write: bool = True,
) -> Path:
    """Write a checkpoint below `folder`, then remove all but the newest `keep` and the best.

    Where weights are split over processes, all of them call it, and one has `write` set.
    """
    place = folder_of_step(folder, state.total_steps)
    weights, aliases = _unshared(_whole(module.state_dict()))
    moments, scalars = _flatten(optimizer, module)
    moments = _whole(moments)
    if not write:
        return place
    try:
        with replace_folder(place, durable=True) as scratch:
            save_file(weights, scratch / _WEIGHTS)
            save_file(moments, scratch / _OPTIMIZER)
            content = {
                "format": FORMAT,
                **state.content(),
                "aliases": aliases,
                "optimizer": scalars,
                "sha256": {name: _sha256(scratch / name) for name in (_WEIGHTS, _OPTIMIZER)},
            }
            text = json.dumps(content)
            digest = hashlib.sha256(text.encode()).hexdigest()
            (scratch / _STATE).write_text(f"{digest}\n{text}\n", encoding="utf-8")
    except (OSError, SafetensorError) as error:
        before = latest(folder)
        kept = f"{before} is untouched" if before else "there is no earlier one"
        raise CheckpointError(
            f"{place} could not be written: {error}. Free space there and resume; {kept}."
        ) from error
    # later checkpoints belong to a continuation that was abandoned by resuming an earlier one
    for later in (other for other in _folders(folder) if other.name > place.name):
        shutil.rmtree(later, ignore_errors=True)
    best = folder_of_step(folder, state.heldout.best_step) if state.heldout else None
    for old in _folders(folder)[keep:]:
        if old != best:
            shutil.rmtree(old, ignore_errors=True)
    return place


def folder_of_step(folder: Path, total_steps: int) -> Path:
    """Where the checkpoint of a step is, below the folder of checkpoints."""
    return folder / f"step-{total_steps:08d}"


class FormatError(CheckpointError):
    """A checkpoint was written in another format; it is not damaged."""


class Checkpoint:
    """A checkpoint on disk whose hashes have been verified."""

    def __init__(self, place: Path) -> None:
        """Verify it; raises a `CheckpointError` if it is damaged."""
        self.place = place
        self._content = _verify(place)
        try:
            self.state = _state(self._content)
            """The progress that it was written at."""
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{place / _STATE} is not what a checkpoint has ({error!r})."
            ) from error

    def restore(self, module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Load its tensors into the module and the optimizer."""
        self.restore_weights(module)
        with self._explained():
            moments = load_file(self.place / _OPTIMIZER)
            _restore(optimizer, module, moments, self._content["optimizer"])

    def restore_weights(self, module: nn.Module, *, partly: bool = False) -> None:
        """Load its weights into the module, or with `partly` into a module that has some of them.

        Every weight of the module must be in the checkpoint.
        """
        with self._explained():
            weights = load_file(self.place / _WEIGHTS)
            for alias, kept in self._content["aliases"].items():
                weights[alias] = weights[kept]
            if partly:
                weights = {name: weights[name] for name in module.state_dict() if name in weights}
            module.load_state_dict(_split(weights, module.state_dict()))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, *_WRONG_CONTENT) as error:
            raise CheckpointError(f"{self.place} was written by another model: {error}") from error


_WRONG_CONTENT = (SafetensorError, OSError, AttributeError, KeyError, TypeError, ValueError)


def _state(content: dict[str, Any]) -> TrainState:
    """The progress in state.json; a `TypeError` if a number is none."""
    cursor = content["cursor"]
    state = TrainState(
        stage=content["stage"],
        step=content["step"],
        total_steps=content["total_steps"],
        tokens=content["tokens"],
        cursor=Cursor(
            step=cursor["step"],
            counters=tuple(cursor["counters"]),
            pending=tuple(Draw(*draw) for draw in cursor["pending"]),
        ),
        corpus_fingerprint=content["corpus_fingerprint"],
        recipe_fingerprint=content["recipe_fingerprint"],
        heldout=HeldoutProgress(**content["heldout"]) if "heldout" in content else None,
    )
    numbers = (state.stage, state.step, state.total_steps, state.tokens, state.cursor.step)
    if not all(type(one) is int and one >= 0 for one in (*numbers, *state.cursor.counters)):
        raise TypeError("a count is no number from 0 on")
    if not isinstance(state.corpus_fingerprint, str):
        raise TypeError("a fingerprint is no text")
    if state.heldout is not None:
        state.heldout.check()
    return state


def latest_valid(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest valid checkpoint, if there are any; warns of each damaged one that it skips.

    Raises:
        CheckpointError: one has another format, or none of them is valid.
    """
    places = _folders(folder)
    for place in places:
        try:
            return Checkpoint(place)
        except FormatError:
            raise
        except CheckpointError as error:
            warn(f"{error} Trying the checkpoint before it.")
    if places:
        raise CheckpointError(
            f"{folder} has {len(places)} checkpoints and all of them are damaged. Start a new run "
            "in another folder with --out; nothing was changed here."
        )
    return None


def latest(folder: Path) -> Path | None:
    """The newest checkpoint, valid or not."""
    return next(iter(_folders(folder)), None)


def _folders(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True)


def _verify(place: Path) -> dict[str, Any]:
    """The content of state.json, after its hash and those of the files it names were checked."""
    file = place / _STATE
    try:
        digest, text = file.read_text(encoding="utf-8").split("\n", 1)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}.") from error
    text = text.removesuffix("\n")
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise CheckpointError(f"{file} is damaged: its SHA-256 is not the recorded one.")
    try:
        content: dict[str, Any] = json_text.parse(text)
        written, hashes = content["format"], dict(content["sha256"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{file} is not what a checkpoint has ({error!r}).") from error
    if written != FORMAT:
        raise FormatError(
            f"{place} has format {written} and this version reads {FORMAT}: "
            f"resume it with the version of Isoglot that wrote it, or start a new run."
        )
    for name, expected in hashes.items():
        if not (place / name).is_file():
            raise CheckpointError(f"{place / name} is missing.")
        if _sha256(place / name) != expected:
            raise CheckpointError(
                f"{place / name} is damaged: its SHA-256 is not the recorded one."
            )
    return content


def _unshared(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors without duplicates (tied embeddings), and the name that each duplicate refers to."""
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
    optimizer: torch.optim.Optimizer, module: nn.Module
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimizer's state by weight name: tensors, and everything else."""
    names = {id(weight): name for name, weight in module.named_parameters()}
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
    module: nn.Module,
    tensors: dict[str, Tensor],
    scalars: dict[str, Any],
) -> None:
    found: dict[str, dict[str, Any]] = {}
    for name, value in {**tensors, **scalars["state"]}.items():
        weight, _, key = name.rpartition("|")
        found.setdefault(weight, {})[key] = value
    names = {id(weight): name for name, weight in module.named_parameters()}
    ordered = [names[id(w)] for group in optimizer.param_groups for w in group["params"]]
    groups = optimizer.state_dict()["param_groups"]
    for group, saved in zip(groups, scalars["groups"], strict=True):
        # settings come from the recipe; only what the optimizer itself records is restored
        group.update({key: value for key, value in saved.items() if key not in group})
    like = {name: dict(module.named_parameters())[name] for name in found}
    for name, of_weight in found.items():
        for key, value in of_weight.items():
            if torch.is_tensor(value) and value.shape == like[name].shape:
                of_weight[key] = _split({key: value}, {key: like[name]})[key]
    optimizer.load_state_dict(
        {
            "state": {i: found[name] for i, name in enumerate(ordered) if name in found},
            "param_groups": groups,
        }
    )


def _whole(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that are split over processes, gathered."""
    return {
        name: one.full_tensor() if isinstance(one, DTensor) else one
        for name, one in tensors.items()
    }


def _split(tensors: dict[str, Tensor], like: dict[str, Tensor]) -> dict[str, Tensor]:
    """Whole tensors, split as others of the same names are."""
    found = dict(tensors)
    for name, other in like.items():
        if name in found and isinstance(other, DTensor):
            whole, mesh = found[name].to(other.device), other.device_mesh
            found[name] = distribute_tensor(whole, mesh, other.placements, src_data_rank=None)
    return found


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
