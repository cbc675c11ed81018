"""Devices of a run, as `train_step.py` and `run.py` use them.

accelerate chooses the device and the processes, `processes/distributed.py` what they share. The
rest keeps the host from waiting: CUDA events and asynchronous copies for losses, and a frozen
garbage collector.
"""

from __future__ import annotations

import atexit
import functools
import gc
import os
import time
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.state import AcceleratorState

from isoglot.atomic import replace_file
from isoglot.errors import IsoglotError, LockedError, WriteError
from isoglot.locks import lock_folder
from isoglot.pretraining.processes.distributed import share_module
from isoglot.pretraining.processes.interruptions import killed_by_signals
from isoglot.pretraining.processes.rendezvous import init_method
from isoglot.pretraining.processes.waiting import wait_for_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch import Tensor

    from isoglot.pretraining.config import PretrainConfig
    from isoglot.pretraining.train_module import TrainModule
    from isoglot.types import Batch

_MAX_WHOLE_LAYERS = 12
"""Models with more layers are compiled by regions: 24 layers, compiled whole, took 86 s (H200)."""


def make_accelerator(config: PretrainConfig, folder: Path) -> Accelerator:
    """The accelerator of a run: device, mixed precision, and trackers that write into a folder."""
    gpu = torch.cuda.is_available()
    bf16 = config.precision == "bf16" or (config.precision == "auto" and gpu)
    precision: Literal["bf16", "no"] = "bf16" if bf16 else "no"
    _forget_other_precision(precision)
    with killed_by_signals():
        accelerator = Accelerator(
            cpu=not gpu,
            mixed_precision=precision,
            log_with=list(config.logging.trackers) or None,
            project_dir=folder,
            kwargs_handlers=[_process_group(config)],
        )
    if accelerator.num_processes > 1:
        _destroy_process_group_at_exit()
    return accelerator


def _forget_other_precision(precision: str) -> None:
    """Let a second run or fine-tuning in one Python process have another precision.

    accelerate keeps that of the first for the whole process, and refuses another.
    """
    known = AcceleratorState._shared_state  # noqa: SLF001
    if known and known.get("_mixed_precision") != precision:
        AcceleratorState._reset_state()  # noqa: SLF001


def _process_group(config: PretrainConfig) -> InitProcessGroupKwargs:
    limit = timedelta(minutes=config.distributed.timeout_minutes)
    return InitProcessGroupKwargs(init_method=init_method(), timeout=limit)


def compiles(config: PretrainConfig, device: torch.device) -> bool:
    """Is the encoder compiled?"""
    if config.compile is not None:
        return config.compile
    # padded batches of encoder-decoders have many shapes: compiling costs more than it saves
    return device.type == "cuda" and config.model.decoder is None


def compiles_regions(config: PretrainConfig, num_layers: int, num_processes: int) -> bool:
    """Is each transformer layer compiled by itself, rather than the whole model?"""
    if config.distributed.shards(num_processes):
        return True  # the hooks that gather and free a layer's weights stay outside
    if config.compile_regions is not None:
        return config.compile_regions
    return num_layers > _MAX_WHOLE_LAYERS


def compile_and_wrap(
    module: TrainModule, config: PretrainConfig, accelerator: Accelerator
) -> torch.nn.Module:
    """The module as the steps call it: compiled if asked, shared by several processes."""
    if compiles(config, accelerator.device):
        # the compiler advises TensorFloat32; products in float32 are meant to be exact
        warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
        layers = int(module.encoder.model.config.num_hidden_layers)
        module.compile(regions=compiles_regions(config, layers, accelerator.num_processes))
    return share_module(module, config.distributed, accelerator)


def any_process(accelerator: Accelerator, flag: bool) -> bool:  # noqa: FBT001
    """Is the flag set on any process? All processes get the same answer."""
    return any_process_each(accelerator, flag)[0]


def any_process_each(accelerator: Accelerator, *flags: bool) -> list[bool]:
    """Is each of these flags set on any process?"""
    if accelerator.num_processes == 1:
        return list(flags)
    numbers = torch.tensor([int(flag) for flag in flags], device=accelerator.device)
    return [bool(number) for number in accelerator.reduce(numbers).tolist()]


@contextmanager
def lock_run(folder: Path, accelerator: Accelerator) -> Iterator[None]:
    """Lock a run's folder; the main process holds the lock, and all end where it is refused."""
    refused: LockedError | None = None
    with ExitStack() as stack:
        if accelerator.is_main_process:
            try:
                stack.enter_context(lock_folder(folder))
            except LockedError as error:
                refused = error
        wait_for_all(accelerator)  # a lock that was left behind is waited for
        if any_process(accelerator, refused is not None):
            raise refused or SystemExit(1)  # the main process says why
        yield


@functools.cache
def _destroy_process_group_at_exit() -> None:
    """Leave the process group before the interpreter exits; its threads would abort otherwise."""
    atexit.register(_destroy_process_group)


def _destroy_process_group() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def enable_determinism() -> None:
    """Use only GPU kernels whose results do not depend on timing."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    # filling uninitialized memory guards against reads before writes, and writes all memory twice
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


@contextmanager
def gc_frozen() -> Iterator[Callable[[], None]]:
    """Exclude all present objects from garbage collection (`gc.freeze`) inside the block.

    With torch, transformers and a compiled model loaded, a full collection visits half a million
    objects and pauses training for 0.2 to 0.3 s. The value is a function that freezes again, for
    objects that the first step makes.
    """
    gc.unfreeze()
    gc.collect()  # remains of an earlier run would keep their memory, or the GPU's
    gc.freeze()
    try:
        yield gc.freeze
    finally:
        gc.unfreeze()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSchedule:
    """After which steps of a stage the run validates, saves and exports."""

    steps_before: int = 0
    """Steps of the run before this stage; intervals count over the whole run."""
    last_step: int
    """The stage's last step."""
    validate_every: int
    save_every: int
    export_every: int
    """Steps between two; 0: never. The last step is always validated and saved."""

    @classmethod
    def of(cls, config: PretrainConfig, *, steps_before: int, last_step: int) -> StepSchedule:
        """The schedule that a recipe asks for."""
        return cls(
            steps_before=steps_before,
            last_step=last_step,
            validate_every=config.logging.validate_every_steps,
            save_every=config.checkpoint.every_steps,
            export_every=config.export.every_steps,
        )

    def validates(self, step: int) -> bool:
        """Is the held-out loss computed after this step of the stage?"""
        return step == self.last_step or self._is_multiple(step, self.validate_every)

    def saves(self, step: int) -> bool:
        """Is a checkpoint written after this step?"""
        return step == self.last_step or self._is_multiple(step, self.save_every)

    def exports(self, step: int) -> bool:
        """Is an intermediate model exported after this step?"""
        return self._is_multiple(step, self.export_every)

    def needs_sync(self, step: int) -> bool:
        """Are the weights of this step needed? The next step is then not launched before."""
        return self.validates(step) or self.saves(step) or self.exports(step)

    def _is_multiple(self, step: int, every: int) -> bool:
        return every > 0 and (self.steps_before + step) % every == 0


class DeviceEvent:
    """A point in the work of a device: a CUDA event, or the host's clock on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self._event: torch.cuda.Event | None = None
        self._clock = time.perf_counter()  # a CPU runs synchronously
        if device.type == "cuda":
            self._event = torch.cuda.Event(enable_timing=True)
            self._event.record()

    def wait(self) -> None:
        """Block the host until the device has reached the event."""
        if self._event is not None:
            self._event.synchronize()

    def since(self, before: DeviceEvent) -> float:
        """Seconds from another event of the same device; both must have been reached."""
        if self._event is not None and before._event is not None:
            milliseconds: float = before._event.elapsed_time(self._event)
            return milliseconds / 1000
        return self._clock - before._clock


def to_host_async(values: Tensor) -> Tensor:
    """Copy numbers to pinned host memory; they are valid after a later `DeviceEvent.wait`."""
    if not values.is_cuda:
        return values
    host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    return host.copy_(values, non_blocking=True)


class NonFiniteError(IsoglotError):
    """The loss or its gradient became infinite or NaN."""


def nonfinite_error(
    step: int,
    means: dict[str, float],
    micro_batches: list[Batch],
    folder: Path | None,
    *,
    rank: int,
) -> NonFiniteError:
    """The error for a step (from 1); its batch is written into the folder, if one is given."""
    losses = ", ".join(f"{name} {value:.4g}" for name, value in means.items())
    message = f"step {step}: the loss or its gradient is not finite ({losses})."
    if folder is not None:
        try:
            message += f" The batch is in {_dump(step, micro_batches, folder, rank)}."
        except WriteError as error:
            message += f" The batch was not kept: {error}"
    return NonFiniteError(
        f"{message} Lower optimizer.learning_rate or set loss.not_finite: skip, and resume from "
        f"the last checkpoint."
    )


def _dump(step: int, micro_batches: list[Batch], folder: Path, rank: int) -> Path:
    from safetensors.torch import save_file

    tensors = {}
    for number, batch in enumerate(micro_batches):
        for name, tensor in batch.rows.tensors().items():
            tensors[f"{number}.{name}"] = tensor.clone()
        tensors[f"{number}.target_positions"] = batch.target_positions
        tensors[f"{number}.targets"] = batch.targets
    file = folder / f"not-finite-step-{step}-rank-{rank}.safetensors"
    with replace_file(file) as partial:
        save_file(tensors, partial)
    return file
