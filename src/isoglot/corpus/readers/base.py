"""What a reader is: raw files of one format in, records out, one by one.

A reader splits files into records and nothing more; cleaning comes after it. Every line it reads
comes back: as a `Record`, or as a `Skipped` that says why it could not become one, so that the
counts of a prepared corpus always add up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Kind = Literal["text", "pairs"]
"""What a source holds: sentences of one language, or pairs of translations."""


@dataclass(frozen=True, slots=True)
class Record:
    """One sentence (`texts` has one entry) or one pair of translations (two entries)."""

    texts: tuple[str, ...]
    document: int = 0
    """Index of the document the sentence belongs to, counted over the files of the cell."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that is no record, with the reason under which it is counted."""

    reason: str


class Reader(ABC):
    """Reads the files of one language (or pair of languages) of one source."""

    name: ClassVar[str]
    """The name settings choose it by (`format: lines`)."""
    kind: ClassVar[Kind]
    """The kind of source it reads."""

    def check_files(self, files: Sequence[Path]) -> str | None:
        """What is wrong with this choice of files, as the end of a sentence; None if nothing."""
        del files
        return None

    @abstractmethod
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        """All records of the files, in order."""
