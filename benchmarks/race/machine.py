"""The name of this machine, its peak speed in matrix products, and memory in use."""

from __future__ import annotations

import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.memory import peak_bytes


def on_gpu() -> bool:
    return torch.cuda.is_available()


def name() -> str:
    if on_gpu():
        return torch.cuda.get_device_name().replace(" ", "-")
    return f"{_processor().replace(' ', '-')}-{os.cpu_count()}-cores"


def matmul_peak() -> float:
    """FLOP/s of large square matrix products, the best of three sizes."""
    sizes = (4096, 8192, 16384) if on_gpu() else (512, 1024, 2048)
    return max(_products(size) for size in sizes)


def _products(size: int) -> float:
    kind: dict[str, Any] = {"device": "cuda", "dtype": torch.bfloat16} if on_gpu() else {}
    left, right = torch.randn(size, size, **kind), torch.randn(size, size, **kind)
    for _ in range(3):
        left @ right
    times = []
    for _ in range(10):
        synchronize()
        start = time.perf_counter()
        left @ right
        synchronize()
        times.append(time.perf_counter() - start)
    return 2 * size**3 / statistics.median(times)


def synchronize() -> None:
    if on_gpu():
        torch.cuda.synchronize()


def peak_gib() -> float:
    """Peak memory of this process in GiB: GPU memory if there is a GPU, else resident memory."""
    if on_gpu():
        return torch.cuda.max_memory_allocated() / 2**30
    return peak_bytes() / 2**30


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.machine()
