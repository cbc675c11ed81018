"""Memory: how much is free for a process, and the most that it has used.

On a GPU it is the device's; on a CPU that of the machine, or of the control group (container) of
the process where that has less.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import torch

from isoglot.models.cpu_memory import release_freed_memory

_GIB = 2**30
_CGROUP = Path("/sys/fs/cgroup")
_OUT_OF_MEMORY = (
    "out of memory",
    "allocate memory",
    "ALLOC_FAILED",
    "bad_alloc",
    "could not create a",  # oneDNN
    "could not execute a",
    "start new thread",
)
"""Parts of the messages of allocators, and of libraries that get no memory."""


def free_memory(device: torch.device) -> int:
    """Bytes that this process may still take, on its GPU or of the machine."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(device)[0])
    return min(_machine_bytes(), _group_bytes())


def _machine_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    # no /proc (macOS): half of the machine
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _group_bytes() -> int:
    """Bytes that the control group of the process has left; without a limit, a great many."""
    left = sys.maxsize
    for limit, used in (
        (_CGROUP / "memory.max", _CGROUP / "memory.current"),
        (_CGROUP / "memory/memory.limit_in_bytes", _CGROUP / "memory/memory.usage_in_bytes"),
    ):
        try:
            whole = limit.read_text(encoding="ascii").strip()
            if whole != "max":
                taken = int(used.read_text(encoding="ascii"))
                left = min(left, int(whole) - taken + _reclaimable(used.parent))
        except (OSError, ValueError):
            continue
    return max(left, 0)


def _reclaimable(group: Path) -> int:
    """Bytes of cached files that the kernel gives back when they are needed."""
    for line in (group / "memory.stat").read_text(encoding="ascii").splitlines():
        if line.startswith("inactive_file "):
            return int(line.split()[1])
    return 0


def start_peak(device: torch.device) -> None:
    """Forget earlier peaks of this process."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        return
    release_freed_memory()
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return  # the peak of the whole process then, which is no less


def peak_memory(device: torch.device) -> int:
    """The most bytes that were in use since `start_peak`."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_reserved(device))
    found = _status("VmHWM:")
    if found is not None:
        return found
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def device_index(device: torch.device) -> int:
    """The number of a GPU; `cuda` alone is the current one."""
    return torch.cuda.current_device() if device.index is None else device.index


def used_memory(device: torch.device) -> int:
    """Bytes that this process uses now."""
    if device.type == "cuda":
        return int(torch.cuda.memory_reserved(device))
    return _status("VmRSS:") or 0


def limit_memory(device: torch.device, limit: int) -> None:
    """Let allocations of this process fail beyond so many more bytes.

    A failing allocation is an error that can be caught; a process that exhausts the machine is
    killed, and others with it.
    """
    if device.type == "cuda":
        total = torch.cuda.mem_get_info(device)[1]
        fraction = min(1.0, limit / total)
        torch.cuda.set_per_process_memory_fraction(fraction, device_index(device))
        return
    used = _status("VmData:")
    if used is not None:
        import resource

        _, highest = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = used + limit if highest == resource.RLIM_INFINITY else min(used + limit, highest)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, highest))
        # should the kernel have to choose a process nevertheless, it is this one
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _status(name: str) -> int | None:
    """Bytes of an entry of /proc/self/status, where there is one."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)


def is_out_of_memory(error: BaseException) -> bool:
    """Did an allocation fail?"""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError | OSError | ImportError) and tells_of_memory(str(error))


def tells_of_memory(message: str) -> bool:
    """Is it a message about an allocation that failed?"""
    return "MemoryError" in message or any(part in message for part in _OUT_OF_MEMORY)


def gib(number: float) -> str:
    """Bytes for people: `27.5 GiB`, `312 MiB`."""
    return f"{number / _GIB:.1f} GiB" if number >= _GIB else f"{number / 2**20:,.0f} MiB"
