"""The machine that a command runs on: cores, memory, disk and GPUs."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from isoglot.adaptation.findings import MachineFacts

if TYPE_CHECKING:
    from pathlib import Path


def num_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_machine(out: Path) -> MachineFacts:
    """The machine; free disk space is that of the folder that will be written."""
    import torch

    there = next(place for place in (out, *out.absolute().parents) if place.exists())
    gpus = [torch.cuda.get_device_properties(n) for n in range(torch.cuda.device_count())]
    return MachineFacts(
        cores=num_cores(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        disk_free_bytes=shutil.disk_usage(there).free,
        gpus=tuple(gpu.name for gpu in gpus),
        gpu_memory_bytes=min((gpu.total_memory for gpu in gpus), default=0),
    )
