"""Runs a command and watches it: seconds on the clock, most memory of all its processes."""

from __future__ import annotations

import resource
import subprocess
import threading
import time
from dataclasses import dataclass

import psutil

_EVERY = 0.1


@dataclass(frozen=True)
class Watched:
    seconds: float
    cpu: float
    """Seconds of all processors together, which other work on the machine hardly changes."""
    peak: int
    """Bytes: the largest sum of the resident memory of the command and all its children."""
    said: str


def watch(command: list[str], environment: dict[str, str] | None = None) -> Watched:
    """Run a command to its end; raises if it fails."""
    started, cpu = time.monotonic(), _of_children()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    peak = 0
    over = threading.Event()

    def look() -> None:
        nonlocal peak
        while not over.wait(_EVERY):
            peak = max(peak, _resident(process.pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    said, _ = process.communicate()
    seconds = time.monotonic() - started
    over.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    return Watched(seconds, _of_children() - cpu, peak, said)


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _resident(pid: int) -> int:
    total = 0
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in family:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
