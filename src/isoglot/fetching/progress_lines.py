"""Progress of downloads as lines on standard error, where no command draws bars."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = 15.0
"""Seconds between two lines."""


class ProgressLines:
    """Called with what is downloaded, bytes done and all bytes, it writes a line now and then."""

    def __init__(
        self,
        write: Callable[[str], object] = sys.stderr.write,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write, self._clock = write, clock
        self._last = clock()
        self._begun: dict[str, tuple[float, int]] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report how far a download is."""
        now = self._clock()
        started, before = self._begun.setdefault(stage, (now, done))
        if now - self._last < _SECONDS:
            return
        self._last = now
        line = f"{stage}: {done / 1e6:,.0f} MB"
        if total is not None:
            left = (now - started) * (total - done) / max(1, done - before)
            line += f" of {total / 1e6:,.0f} MB, {duration(left)} left"
        self._write(f"{line}\n")
