"""What listens to the steps of a run: console, metrics file, trackers, validation."""

from __future__ import annotations

from typing import Protocol

from isoglot.pretrain.hooks.console import Console
from isoglot.pretrain.hooks.metrics import MetricsFile
from isoglot.pretrain.hooks.trackers import Trackers
from isoglot.pretrain.hooks.validation import Validation


class Writer(Protocol):
    """Something that takes records: flat dictionaries with the step they belong to."""

    def write(self, record: dict[str, float | int | str]) -> None:
        """Take one record."""
        ...

    def close(self) -> None:
        """The run ends, in whatever way."""
        ...


__all__ = ["Console", "MetricsFile", "Trackers", "Validation", "Writer"]
