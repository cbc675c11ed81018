"""What listens to the steps of a run: console, metrics file, trackers, validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from isoglot.pretrain.hooks.console import Console
from isoglot.pretrain.hooks.metrics import MetricsFile
from isoglot.pretrain.hooks.trackers import Trackers
from isoglot.pretrain.hooks.validation import Validation

if TYPE_CHECKING:
    from isoglot.pretrain.hooks.record import Record


class Writer(Protocol):
    """Something that takes records: flat dictionaries with the step they belong to."""

    def write(self, record: Record) -> None:
        """Take one record."""
        ...

    def close(self) -> None:
        """The run ends, in whatever way."""
        ...


__all__ = ["Console", "MetricsFile", "Trackers", "Validation", "Writer"]
