"""Writing checkpoints, while training goes on.

    save: plan who writes what (DCP) → copy this process's part to host memory | training goes on
    thread: write and hash the own files → exchange hashes → the main process writes state.json,
            renames the folder and removes old checkpoints

Files go to a temporary folder, are flushed to disk, and the folder is renamed: a crash, a kill or a
full disk leaves the checkpoint before untouched. One checkpoint is written at a time; the next one
waits for it, and so does the end of the run. An error of the thread is known to all processes: the
training loop asks for `failed` at every step, and `wait` raises it.

The thread's exchange uses a gloo group of its own: the training loop's collectives are not mixed
with it, and NCCL is not called from two threads.
"""

from __future__ import annotations

import functools
import os
import shutil
import threading
from contextlib import ExitStack, suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Self

import torch
from torch.distributed.checkpoint.api import CheckpointException
from typing_extensions import override

from isoglot.atomic import partial_folder, replace_folder
from isoglot.errors import CheckpointError, WriteError
from isoglot.pretraining.checkpoints.checkpoint import (
    CheckpointConfig,
    folder_of_step,
    folders,
    latest,
)
from isoglot.pretraining.checkpoints.checkpoint_files import OPTIMIZER, WEIGHTS, write_all
from isoglot.pretraining.checkpoints.checkpoint_state import state_file, state_text
from isoglot.pretraining.checkpoints.checkpoint_storage import (
    HostBuffers,
    SafetensorsWriter,
    first_failure,
    gather_objects,
    plan_and_copy,
)
from isoglot.pretraining.checkpoints.checkpoint_tensors import optimizer_tensors, untied_tensors
from isoglot.pretraining.memory import free_memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from torch import nn
    from torch.distributed import ProcessGroup

    from isoglot.pretraining.checkpoints.checkpoint_state import TrainState

_TIMEOUT = timedelta(days=1)
"""Disks may be slow; a process that has ended is noticed by other means (`liveness.py`)."""
_MEMORY_SHARE = 0.8
"""Share of the free host memory that the copies of a machine's processes may take."""

_MUST_BE_SHARED = (
    "All processes write to the run's folder: it must be on a disk that all machines share. Choose "
    "such a folder with --out."
)


def checkpoint_group(num_processes: int) -> ProcessGroup | None:
    """The group in which processes exchange what a checkpoint needs; all of them call this."""
    return None if num_processes == 1 else _gloo_group(torch.distributed.group.WORLD)


@functools.lru_cache(maxsize=1)
def _gloo_group(_: ProcessGroup) -> ProcessGroup:
    group: ProcessGroup = torch.distributed.new_group(backend="gloo", timeout=_TIMEOUT)
    return group


class CheckpointSaver:
    """Writes the checkpoints of a run; all processes call every method."""

    def __init__(
        self,
        folder: Path,
        config: CheckpointConfig,
        *,
        group: ProcessGroup | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.group = group
        """The processes of the run; none: one."""
        self._folder, self._config, self._note = folder, config, note
        self._buffers = HostBuffers()
        self._writing: _Background | None = None

    @property
    def failed(self) -> bool:
        """Is it known here that a checkpoint could not be written? Then `wait` says why."""
        return self._writing is not None and self._writing.error is not None

    def wait(self) -> None:
        """Wait until the checkpoint that is being written is on disk.

        Raises:
            CheckpointError: it could not be written.
        """
        if self._writing is None:
            return
        self._writing.join()
        error, self._writing = self._writing.error, None
        if error is not None:
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """After an error in training, too, the checkpoint that is being written is finished."""
        if kind is None:
            self.wait()
        elif issubclass(kind, Exception):
            with suppress(Exception):  # the first error is the one to tell
                self.wait()

    def save(self, state: TrainState, module: nn.Module, optimizer: torch.optim.Optimizer) -> Path:
        """Write a checkpoint, then remove all but the newest `keep` and the best.

        Asynchronously, this returns once the tensors are in host memory.
        """
        self.wait()
        place = folder_of_step(self._folder, state.total_steps)
        weights, aliases = untied_tensors(module)
        moments, scalars = optimizer_tensors(optimizer, module)
        tensors = {f"{WEIGHTS}/{name}": tensor for name, tensor in weights.items()}
        tensors |= {f"{OPTIMIZER}/{name}": tensor for name, tensor in moments.items()}
        stack = ExitStack()
        writer = SafetensorsWriter(
            self._buffers if self._config.asynchronous else None,
            fits=self._fits,
            begin=lambda: stack.enter_context(replace_folder(place, durable=True)),
        )
        try:
            plan_and_copy(tensors, writer, self.group)
        except CheckpointException as error:
            _abandon(stack)
            failure = first_failure(error)
            if isinstance(failure, OSError | CheckpointError):
                raise self._error(place, failure) from error
            raise failure from error
        content = {**state.content(), "aliases": aliases, "optimizer": scalars}
        work = partial(self._write, place, writer, stack, content, state)
        if writer.is_copied:
            self._writing = _Background(work)
            self._writing.start()
        else:
            work()
        return place

    def _fits(self, size: int) -> bool:
        """Is there host memory for a copy of this many bytes, on every process of the machine?"""
        more = (size - self._buffers.num_bytes) * int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        fits = more <= _MEMORY_SHARE * free_memory(torch.device("cpu"))
        if not fits:
            self._note(
                f"training waits for the checkpoint, because {more / 1e9:,.1f} GB of host memory "
                "for a copy of it are not free."
            )
        return fits

    def _write(
        self,
        place: Path,
        writer: SafetensorsWriter,
        stack: ExitStack,
        content: dict[str, Any],
        state: TrainState,
    ) -> None:
        """Write this process's files, and let the main process finish the checkpoint."""
        is_main = self.group is None or self.group.rank() == 0
        hashes: dict[str, str] = {}
        refused: CheckpointError | None = None
        try:
            partial_folder(place).mkdir(parents=True, exist_ok=True)
            hashes = write_all(partial_folder(place), writer.files)
        except Exception as error:
            refused = self._error(place, error)
        everyone = gather_objects((hashes, refused), self.group)
        refused = next((one for _, one in everyone if one is not None), None)
        if is_main and refused is not None:
            _abandon(stack)
        elif is_main:
            try:
                with stack:
                    content["sha256"] = {k: v for own, _ in everyone for k, v in own.items()}
                    content["tensors"] = _contents(writer)
                    self._finish(place, content)
            except Exception as error:
                refused = self._error(place, error)
        (refused, *_) = gather_objects(refused, self.group)
        if refused is not None:
            shutil.rmtree(partial_folder(place), ignore_errors=True)
            raise refused
        if is_main:
            self._remove_others(place, state)

    def _finish(self, place: Path, content: dict[str, Any]) -> None:
        """Write state.json, if the files of all processes are there."""
        for name in content["sha256"]:
            if not (partial_folder(place) / name).is_file():
                raise CheckpointError(
                    f"{place}: a file of another process, {name}, is not there. {_MUST_BE_SHARED}"
                )
        state_file(partial_folder(place)).write_text(state_text(content), encoding="utf-8")

    def _remove_others(self, place: Path, state: TrainState) -> None:
        # later checkpoints belong to a continuation that was abandoned by resuming an earlier one
        for later in (other for other in folders(self._folder) if other.name > place.name):
            shutil.rmtree(later, ignore_errors=True)
        best = folder_of_step(self._folder, state.heldout.best_step) if state.heldout else None
        for old in folders(self._folder)[self._config.keep :]:
            if old != best:
                shutil.rmtree(old, ignore_errors=True)

    def _error(self, place: Path, error: BaseException) -> CheckpointError:
        if isinstance(error, CheckpointError):
            return error
        before = latest(self._folder)
        kept = f"{before} is untouched" if before else "there is no earlier one"
        cause = error.__cause__ if isinstance(error, WriteError) else error
        reason = getattr(cause, "strerror", None) or str(error) or type(error).__name__
        return CheckpointError(
            f"{place}: cannot be written ({reason}). Free space there and resume; {kept}."
        )


def _contents(writer: SafetensorsWriter) -> dict[str, dict[str, Any]]:
    """What state.json has of all tensors."""
    found: dict[str, dict[str, Any]] = {WEIGHTS: {}, OPTIMIZER: {}}
    for key, tensor in writer.tensors.items():
        kind, _, name = key.partition("/")
        found[kind][name] = tensor.content()
    return found


class _AbandonedError(Exception):
    """A checkpoint is not finished."""


def _abandon(stack: ExitStack) -> None:
    """Leave the context of a new folder so that it is removed."""
    with suppress(_AbandonedError), stack:
        raise _AbandonedError


class _Background(threading.Thread):
    """Work in a thread, with the error that it ended with."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(name="checkpoint", daemon=True)
        self._work = work
        self.error: BaseException | None = None

    @override
    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error


def save(
    folder: Path,
    state: TrainState,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    keep: int,
    group: ProcessGroup | None = None,
) -> Path:
    """Write a checkpoint below `folder` and wait until it is on disk."""
    config = CheckpointConfig(keep=keep, asynchronous=False)
    return CheckpointSaver(folder, config, group=group).save(state, module, optimizer)
