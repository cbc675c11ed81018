"""The most memory that this process has held."""

from __future__ import annotations

import re
from pathlib import Path


def peak_bytes() -> int:
    """Its peak, by Linux's own account of its address space.

    getrusage would not do: a process begins there with what its parent held when it was made.
    """
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) * 1024
