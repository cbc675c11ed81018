"""bf16 on a CPU: is it there, does it work, is it faster?

Some CPUs multiply bf16 matrices about twice as fast as float32 ones (AVX512-BF16, AMX). Others
emulate it, slowly, and a virtual machine may report an instruction that ends the process (SIGILL).
So `precision: bf16` is tried in a process of its own before a run on a CPU begins. `auto` remains
float32 there, for the same numbers on every CPU, and a run says if bf16 is likely to be faster.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import torch

from isoglot.errors import RecipeError

_FLAGS = ("amx_bf16", "avx512_bf16")
_CPU_INFO = Path("/proc/cpuinfo")
_MIN_WEIGHTS = 10_000_000
_SECONDS = 120
_PROGRAM = """
import time, torch
torch.set_num_threads(1)
def seconds(dtype):
    one, other = torch.randn(1024, 512).to(dtype), torch.randn(512, 1024).to(dtype)
    taken = []
    for _ in range(8):
        began = time.perf_counter()
        product = one @ other
        taken.append(time.perf_counter() - began)
    assert product.isfinite().all()
    return min(taken)
print(seconds(torch.float32) / seconds(torch.bfloat16))
"""
"""Prints how many times as fast a bf16 product is."""


def bf16_instructions(cpu_info: Path = _CPU_INFO) -> str | None:
    """The CPU's instructions for bf16 products, by name; none, or not known: no name."""
    try:
        lines = cpu_info.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return next((flag for flag in _FLAGS if flag in flags), None)


@cache
def bf16_speedup(program: str = _PROGRAM) -> float:
    """How many times as fast as float32 products those in bf16 are on this CPU.

    Raises:
        RecipeError: the process that tried it died.
    """
    try:
        done = subprocess.run(  # noqa: S603 (this program itself)
            [sys.executable, "-P", "-c", program],  # -P: a user's `random.py` is not imported
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise RecipeError(_refusal(f"took more than {_SECONDS} s")) from None
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise RecipeError(_refusal(f"ended a test process with {name}"))
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise RecipeError(_refusal(f"failed ({said[-1] if said else 'without a word'})"))
    return float(done.stdout.split()[-1])


def _refusal(what: str) -> str:
    return f"precision: bf16 {what} on this CPU. Set precision: float32."


def check_cpu_precision(precision: str, *, on_gpu: bool | None = None) -> None:
    """Try bf16 in a process of its own if a run on a CPU is to use it.

    Raises:
        RecipeError: it does not work.
    """
    gpu = torch.cuda.is_available() if on_gpu is None else on_gpu
    if precision == "bf16" and not gpu:
        bf16_speedup()


def precision_note(precision: str, *, on_gpu: bool, num_weights: int) -> str | None:
    """A sentence if the other precision is likely to be faster on this CPU.

    Small models gain nothing: their matrix products are a small part of a step.
    """
    if on_gpu or num_weights < _MIN_WEIGHTS:
        return None
    if precision == "bf16" and (found := bf16_speedup()) < 1:
        return (
            f"precision: bf16 products take {1 / found:.1f} times as long as float32 ones on this "
            "CPU: precision: float32 is faster."
        )
    if precision == "auto" and (name := bf16_instructions()) is not None:
        return (
            f"this CPU has bf16 instructions ({name}): --set precision=bf16 may train faster, "
            "with other rounding."
        )
    return None
