"""Freed memory stays with the process: a tensor of the same size takes no new pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from isoglot.models.cpu_memory import keep_freed_memory

FAULTS = """
import resource, sys, torch
from isoglot.models.cpu_memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
states = torch.randn(512, 1024)
def passes():
    for _ in range(20):
        torch.relu(torch.cat([states] * 8))
passes()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
passes()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not keep_freed_memory(), reason="the C library is not glibc")
def test_the_second_pass_takes_no_new_memory():
    command = [sys.executable, "-W", "ignore", "-c", FAULTS]
    faults = int(subprocess.run([*command, "keep"], capture_output=True, check=True).stdout)
    assert faults < 1000  # without: 20 passes of 2 tensors of 4,096 pages
