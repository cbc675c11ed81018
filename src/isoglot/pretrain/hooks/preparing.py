"""What a person sees while objectives make what they need of a corpus: a line now and then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console as Terminal

_SECONDS_BETWEEN_LINES = 10.0


class Preparing:
    """Says what is being made, and how far it is where that takes long."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._stage = ""
        self._last_line = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """`done` of `total` of a stage are done."""
        if stage != self._stage:
            self._terminal.print(f"{stage} (once for this corpus) ...", highlight=False)
        elif time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES and total:
            self._terminal.print(f"{stage}: {done / total:.0%}", highlight=False)
        else:
            return
        self._stage, self._last_line = stage, time.monotonic()
