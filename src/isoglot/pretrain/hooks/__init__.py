"""What listens to the steps of a run: console, metrics file, trackers, validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from isoglot.pretrain.hooks.console import Console
from isoglot.pretrain.hooks.metrics import MetricsFile
from isoglot.pretrain.hooks.preparing import Preparing
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


class Writers:
    """Several writers that take the same records."""

    def __init__(self, *writers: Writer) -> None:
        self._writers = list(writers)

    def add(self, writer: Writer) -> None:
        """One more."""
        self._writers.append(writer)

    def write(self, record: Record) -> None:
        """Hand a record to all of them."""
        for writer in self._writers:
            writer.write(record)

    def close(self) -> None:
        """Close all of them."""
        for writer in self._writers:
            writer.close()


__all__ = ["Console", "MetricsFile", "Preparing", "Trackers", "Validation", "Writers"]
