"""Devices and processes of a run: accelerate chooses them, DDP joins them."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.pretrain.config import PretrainConfig
    from isoglot.pretrain.trainee import Trainee


def make_accelerator(config: PretrainConfig, folder: Path) -> Accelerator:
    """The device at hand, the arithmetic asked for, and trackers that write into a folder."""
    gpu = torch.cuda.is_available()
    bf16 = config.precision == "bf16" or (config.precision == "auto" and gpu)
    accelerator = Accelerator(
        cpu=not gpu,
        mixed_precision="bf16" if bf16 else "no",
        log_with=list(config.watch.trackers) or None,
        project_dir=folder,
    )
    if accelerator.num_processes > 1:
        _leave_at_exit()
    return accelerator


def for_processes(trainee: Trainee, accelerator: Accelerator) -> torch.nn.Module:
    """The trainee, wrapped where there are several processes; buffers are not broadcast."""
    if accelerator.num_processes == 1:
        return trainee
    parameters = inspect.signature(DistributedDataParallel).parameters
    # torch 2.13 renamed the setting
    new, old = "forward_sync_buffers", "broadcast_buffers"
    settings: dict[str, Any] = {new if new in parameters else old: False}
    if accelerator.device.type == "cuda":
        settings["device_ids"] = [accelerator.device]
    return DistributedDataParallel(trainee, **settings)


@functools.cache
def _leave_at_exit() -> None:
    """Leave the group before the interpreter goes: its threads would abort the process else."""
    atexit.register(_leave)


def _leave() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def same_bits_twice() -> None:
    """Leave out the GPU kernels whose sums depend on timing."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    # a guard for those who read memory before they write to it; it writes all memory twice
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
