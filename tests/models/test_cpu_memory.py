"""Freed memory stays with the process: a tensor of the same size takes no new pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from isoglot.models.cpu_memory import keep_freed_memory

FAULTS = """
import contextlib, resource, sys, threading, torch
from isoglot.models.cpu_memory import freed_memory_kept, keep_freed_memory
which, rows = sys.argv[1], int(sys.argv[2])
kept = contextlib.nullcontext()
if which == "small":
    keep_freed_memory()
elif which == "all":
    kept = freed_memory_kept(torch.device("cpu"))
states = torch.randn(rows, 1024)
def passes():
    for _ in range(20):
        torch.relu(torch.cat([states] * 8))
def faults():
    passes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    passes()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])
def pages_kept():
    before = resident()
    torch.ones(5 << 25)  # 640 MiB: no free piece of the heap is as large
    return resident() - before
with kept:
    found = [faults()]
    thread = threading.Thread(target=passes)  # has a heap of its own, of 64 MiB at most
    thread.start()
    thread.join()
    held = resident()
found += [held - resident(), pages_kept()]
print(*found)
"""
SMALL, LARGE = 512, 2048
"""Rows whose eightfold is a tensor of 16 and of 64 MiB: 4,096 and 16,384 pages."""

on_glibc = pytest.mark.skipif(not keep_freed_memory(), reason="the C library is not glibc")


def pages(which, rows):
    """New pages of 20 passes over two tensors; then, as things are after training, pages that were
    given back and pages that stay once a tensor of 640 MiB is freed.
    """
    command = [sys.executable, "-W", "ignore", "-c", FAULTS, which, str(rows)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return [int(number) for number in done.stdout.split()]


@on_glibc
def test_the_second_pass_takes_no_new_memory():
    new, _, stay = pages("small", SMALL)
    assert new < 1000  # without: 20 passes of 2 tensors of 4,096 pages
    assert stay < 1000  # 640 MiB are more than the 32 MiB that are kept


@on_glibc
def test_a_training_step_keeps_tensors_of_any_size():
    """64 MiB are more than `keep_freed_memory` keeps; afterwards large tensors are given back."""
    assert pages("small", LARGE)[0] > 100_000
    new, given_back, stay = pages("all", LARGE)
    assert new < 1000
    assert given_back > 16_384
    assert stay < 1000
