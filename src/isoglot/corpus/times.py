"""How long preparing took: for people, so never part of the corpus."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Times:
    """Seconds, filled in while a corpus is prepared."""

    stages: dict[str, float] = field(default_factory=dict)
    """Stage -> seconds on the clock."""
    cells: dict[str, float] = field(default_factory=dict)
    """Folder of a cell -> seconds of work on it, of all workers together."""

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Measure a stage."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.stages[stage] = time.monotonic() - started

    def add(self, cell: str, seconds: float) -> None:
        """Work on a cell."""
        self.cells[cell] = self.cells.get(cell, 0.0) + seconds
