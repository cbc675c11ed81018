"""What a reader is: raw files of one format in, records out, one by one.

A reader splits files into records and nothing more; cleaning comes after it. Every line it reads
comes back: as a `Record`, or as a `Skipped` that says why it could not become one, so that the
counts of a prepared corpus always add up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from isoglot.corpus.readers.packed import require
from isoglot.corpus.readers.sides import misplaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Kind = Literal["text", "pairs"]
"""What a source holds: sentences of one language, or pairs of translations."""

MOST_SHOWN = 1000
"""Characters of a skipped line that are kept."""


@dataclass(frozen=True, slots=True)
class Record:
    """One text (`texts` has one entry: a sentence, or a document) or one pair of translations."""

    texts: tuple[str, ...]
    document: int = 0
    """Index of the document that the text belongs to, counted over the files read together."""
    line: int = field(default=0, compare=False)
    """The line (row, unit) that it comes from, counted from 1; 0 where that is not known."""
    file: int = field(default=0, compare=False)
    """The index of its file among those read together."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that is no record, with the reason under which it is counted."""

    reason: str
    text: str = field(default="", compare=False)
    """What the line holds, or its beginning; bytes that are not UTF-8 as U+FFFD."""
    line: int = field(default=0, compare=False)
    file: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if len(self.text) > MOST_SHOWN:
            object.__setattr__(self, "text", self.text[:MOST_SHOWN])

    def in_file(self, file: int) -> Skipped:
        """The same line, of the file of this index."""
        return replace(self, file=file) if file else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader(ABC):
    """Reads the files of one language (or pair of languages) of one source.

    The fields that a format adds are its options, plain values with defaults.
    """

    languages: tuple[str, ...] = ()
    """What is read, one language or two: for formats that say in which language a text is."""

    name: ClassVar[str]
    """The name settings choose it by (`format: lines`)."""
    kinds: ClassVar[tuple[Kind, ...]]
    """The kinds of source it reads."""
    together: ClassVar[int] = 1
    """How many files are read together: one, or two where each language has its own."""

    @property
    def pairs(self) -> bool:
        """Are pairs to be read? Where a format holds both kinds, the languages tell."""
        return len(self.languages) == 2 if len(self.kinds) > 1 else self.kinds == ("pairs",)

    def files_of(self, path: Path) -> tuple[Path, ...]:
        """The files that a path of the settings stands for: itself; a folder for some formats."""
        require(path)
        return (path,)

    def check_files(self, files: Sequence[Path]) -> str | None:
        """What is wrong with this choice of files, as the end of a sentence; None if nothing."""
        if len(files) % self.together:
            return (
                f"format {self.name!r} reads two files at a time, the first language's first; "
                f"got {len(files)}"
            )
        return misplaced(files, self.languages) if self.together == 2 else None

    @abstractmethod
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        """All records of files that belong together, in order."""
