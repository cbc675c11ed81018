"""Checkpoints: everything that a run needs to resume bit for bit.

    checkpoints/step-00001000/
        weights.safetensors      encoder, heads, queues, momentum encoders
        optimizer.safetensors    moments of the optimizer
        state.json               step, stage, cursor, fingerprints, parts of tensors, SHA-256

With several processes each writes files of its own, weights-00001-of-00004.safetensors and so on
(`checkpoint_files.py`). This file reads checkpoints; `checkpoint_saver.py` writes them, and
`checkpoint_state.py` is about state.json. A checkpoint is verified when it is read (`_verify`), by
all processes, each hashing a share of the files; a damaged one is skipped with a warning; a run
whose checkpoints are all damaged is refused. It can be read by any number of processes, whatever
the number and strategy of those that wrote it.
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch.distributed.checkpoint.api import CheckpointException

from isoglot.errors import CheckpointError
from isoglot.pretraining.checkpoints.checkpoint_files import (
    OPTIMIZER,
    WEIGHTS,
    Part,
    SavedTensor,
    check_hashes,
)
from isoglot.pretraining.checkpoints.checkpoint_reader import SafetensorsReader, load_into
from isoglot.pretraining.checkpoints.checkpoint_state import (
    ONE_PROCESS_FORMAT,
    FormatError,
    TrainState,
    parse_state,
    read_state,
    state_file,
)
from isoglot.pretraining.checkpoints.checkpoint_storage import first_failure, gather_objects
from isoglot.pretraining.checkpoints.checkpoint_tensors import load_targets, new_state, set_groups
from isoglot.ranges import NumSteps, Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from torch import nn
    from torch.distributed import ProcessGroup


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """When checkpoints are written."""

    every_steps: NumSteps = 1000
    """Steps between two checkpoints; the last step always gets one."""
    keep: Annotated[int, Range(1, 10**6)] = 2
    """How many of the newest to keep; the best one is kept besides, where a run looks for it."""
    asynchronous: bool = True
    """Train on while a checkpoint is written: only the copy to host memory, as large as the
    checkpoint, is waited for; false: wait until it is on disk."""

    def __post_init__(self) -> None:
        check_ranges(self)


def folder_of_step(folder: Path, total_steps: int) -> Path:
    """Where the checkpoint of a step is, below the folder of checkpoints."""
    return folder / f"step-{total_steps:08d}"


class Checkpoint:
    """A checkpoint on disk whose hashes have been verified."""

    def __init__(self, place: Path, group: ProcessGroup | None = None) -> None:
        """Verify it; raises a `CheckpointError` if it is damaged.

        With a group of processes, all of them call this, and each hashes some of the files.
        """
        self.place, self._group = place, group
        self._content = _with_shared_errors(lambda: _verify(place, group), group)
        found = _with_shared_errors(lambda: _parse_content(place, self._content), group)
        self.state, self._tensors = found

    def restore(self, module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Load its tensors into the module and the optimizer."""
        self.restore_weights(module)
        with self._explained():
            scalars = self._content["optimizer"]
            set_groups(optimizer, scalars)
            tensors = new_state(optimizer, module, self._tensors[OPTIMIZER], scalars)
            self._load(OPTIMIZER, tensors)

    def restore_weights(self, module: nn.Module, *, partly: bool = False) -> None:
        """Load its weights into the module, or with `partly` into a module that has some of them.

        Every weight of the module must be in the checkpoint.
        """
        with self._explained():
            aliases = self._content["aliases"]
            found, copies = load_targets(module, self._tensors[WEIGHTS], aliases, partly=partly)
            self._load(WEIGHTS, found)
            for target, source in copies:
                target.copy_(source)

    def read(self, kind: str = WEIGHTS) -> dict[str, torch.Tensor]:
        """All tensors of a kind (`weights` or `optimizer`), whole, in host memory."""
        found = {
            name: torch.empty(saved.shape, dtype=saved.dtype)
            for name, saved in self._tensors[kind].items()
        }
        with self._explained():
            self._load(kind, found)
        return found

    def _load(self, kind: str, tensors: Mapping[str, torch.Tensor]) -> None:
        saved = {f"{kind}/{name}": one for name, one in self._tensors[kind].items()}
        wanted = {f"{kind}/{name}": tensor for name, tensor in tensors.items()}
        load_into(wanted, SafetensorsReader(self.place, saved), self._group)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except CheckpointException as error:
            raise CheckpointError(
                f"{self.place} was written by another model: {first_failure(error)}. {_SAME_RECIPE}"
            ) from error
        except (RuntimeError, *_WRONG_CONTENT) as error:
            raise CheckpointError(
                f"{self.place} was written by another model: {error}. {_SAME_RECIPE}"
            ) from error


def _with_shared_errors(work: Callable[[], T], group: ProcessGroup | None) -> T:
    """The result of a function; an error of one process is raised on all."""
    result: T | None = None
    error: CheckpointError | None = None
    try:
        result = work()
    except CheckpointError as found:
        error = found
    said = [one for one in gather_objects(error, group) if one is not None]
    if said:
        raise said[0]
    assert result is not None
    return result


_SAME_RECIPE = "Resume with the recipe that the run began with, or start a new run with --out."
_WRONG_CONTENT = (SafetensorError, OSError, AttributeError, KeyError, TypeError, ValueError)


def _parse_content(
    place: Path, content: dict[str, Any]
) -> tuple[TrainState, dict[str, dict[str, SavedTensor]]]:
    """The progress in state.json, and the tensors of each kind."""
    try:
        state = parse_state(content)
        if content["format"] == ONE_PROCESS_FORMAT:
            return state, {kind: _tensors_of_format_2(place, kind) for kind in (WEIGHTS, OPTIMIZER)}
        tensors = {
            kind: {
                name: SavedTensor.of_content(one)
                for name, one in dict(content["tensors"][kind]).items()
            }
            for kind in (WEIGHTS, OPTIMIZER)
        }
        _check_sizes(place, tensors, content["sha256"])
    except (*_WRONG_CONTENT, OverflowError) as error:
        raise CheckpointError(
            f"{state_file(place)} is not the state of a checkpoint ({error!r})."
        ) from error
    return state, tensors


def _tensors_of_format_2(place: Path, kind: str) -> dict[str, SavedTensor]:
    """The tensors of a checkpoint of the format before."""
    name, found = f"{kind}.safetensors", {}
    with safe_open(place / name, framework="pt") as opened:
        for key in opened.keys():  # noqa: SIM118, it is no mapping
            tensor = opened.get_tensor(key)
            shape = tuple(tensor.shape)
            parts = (Part(name, (0,) * len(shape), shape),) if tensor.numel() else ()
            found[key] = SavedTensor(tensor.dtype, shape, parts)
    return found


def _check_sizes(
    place: Path, tensors: Mapping[str, Mapping[str, SavedTensor]], hashes: Mapping[str, str]
) -> None:
    """A `ValueError` if a file cannot hold what it is said to: nothing is allocated for it."""
    needed: Counter[str] = Counter()
    for found in tensors.values():
        for one in found.values():
            for part in one.parts:
                needed[part.file] += math.prod(part.sizes) * one.dtype.itemsize
    for file, size in needed.items():
        if file not in hashes or size > (place / file).stat().st_size:
            raise ValueError(f"{file} is too short, or has no hash")


def latest_valid(
    folder: Path, warn: Callable[[str], None], group: ProcessGroup | None = None
) -> Checkpoint | None:
    """The newest valid checkpoint, if there are any; warns of each damaged one that it skips.

    With a group of processes, all of them call this, and get the one that is valid for all.

    Raises:
        CheckpointError: one has another format, or none of them is valid.
    """
    places = [folder / name for name in gather_objects([p.name for p in folders(folder)], group)[0]]
    for place in places:
        try:
            return Checkpoint(place, group)
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
    return next(iter(folders(folder)), None)


def folders(folder: Path) -> list[Path]:
    """All checkpoints, the newest first."""
    return sorted(folder.glob("step-*"), reverse=True)


def _verify(place: Path, group: ProcessGroup | None) -> dict[str, Any]:
    """The content of state.json, after its hash and those of this process's files were checked."""
    content = read_state(place)
    rank, processes = (0, 1) if group is None else (group.rank(), group.size())
    check_hashes(place, dict(sorted(content["sha256"].items())[rank::processes]))
    return content
