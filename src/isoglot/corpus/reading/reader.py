"""What a reader is: raw files of one format in, records out, one by one.

A reader splits files into records and does no cleaning. Every line it reads comes back: as a
`Record`, or as a `Skipped` with the reason, so that the counts of a prepared corpus add up.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

from typing_extensions import override

from isoglot.corpus.reading.line_ranges import WHOLE
from isoglot.corpus.storage.shards import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.corpus.reading.line_ranges import LineRange

MAX_SHOWN_CHARACTERS = 1000
"""Characters of a skipped line that are kept."""


@dataclass(slots=True)  # not frozen: that takes three times as long for every line
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
    """The (beginning of the) line; bytes that are not UTF-8 as U+FFFD."""
    line: int = field(default=0, compare=False)
    file: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if len(self.text) > MAX_SHOWN_CHARACTERS:
            object.__setattr__(self, "text", self.text[:MAX_SHOWN_CHARACTERS])

    def in_file(self, file: int) -> Skipped:
        """The same line, of the file of this index."""
        return replace(self, file=file) if file else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader(ABC):
    """Reads the files of one language (or pair of languages) of one source.

    The fields that a format adds are its options, plain values with defaults.
    """

    languages: tuple[str, ...] = ()
    """One language or two: for formats that name the language of a text."""

    name: ClassVar[str]
    """Its name in the settings (`format: lines`)."""
    kinds: ClassVar[tuple[Kind, ...]]
    """The kinds of source it reads."""
    together: ClassVar[int] = 1
    """How many files are read together: one, or two where each language has its own."""

    @property
    def pairs(self) -> bool:
        """Whether pairs are read; where a format holds both kinds, the languages decide."""
        return len(self.languages) == 2 if len(self.kinds) > 1 else self.kinds == ("pairs",)

    def files_of(self, path: Path) -> tuple[Path, ...]:
        """The files of a path in the settings: itself, or those of a folder for some formats."""
        return (path,)

    def check_files(self, files: Sequence[Path]) -> str | None:
        """What is wrong with these files, as the end of a sentence; None if nothing."""
        if len(files) % self.together:
            return (
                f"format {self.name!r} reads two files at a time, the first language's first; "
                f"got {len(files)}"
            )
        paired = self.together == 2 and len(self.languages) == 2
        return _swapped_file(files, self.languages) if paired else None

    @abstractmethod
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        """All records of files that are read together, in order."""


class LineReader(Reader):
    """A reader of formats with a record a line, which can read a range of a file's lines."""

    __slots__ = ()
    documents_span_lines: ClassVar[bool] = False
    """Whether a document may have several lines, so that a range may begin inside of one."""

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        return self.read_ranges(files, [WHOLE] * len(files))

    @abstractmethod
    def read_ranges(
        self, files: Sequence[Path], ranges: Sequence[LineRange]
    ) -> Iterator[Record | Skipped]:
        """The records of a range of each file; documents are counted from the first of them."""


def _swapped_file(files: Sequence[Path], languages: Sequence[str]) -> str | None:
    """Which file is named after the other language of the pair, as the end of a sentence.

    In the order `[a.en, b.en, a.de, b.de]` English would be paired with English.
    """
    for index, path in enumerate(files):
        own, other = languages[index % 2], languages[1 - index % 2]
        named = set(re.split(r"[^a-z0-9]+", path.name.lower()))
        if other.lower() in named and own.lower() not in named:
            return (
                f"{path.name} is in the place of a file of {own!r} and seems to be {other!r}; "
                f"give the files two by two, each time {languages[0]!r} first, then "
                f"{languages[1]!r}"
            )
    return None


Content = TypeVar("Content")


class Entry(NamedTuple, Generic[Content]):
    """A line of a file with ids."""

    id: str
    content: Content
    line: int
    shown: str
    """The line as `--dropped` shows it."""


def join_by_id(
    first: Iterator[Entry[Content] | Skipped], second: Iterator[Entry[Content] | Skipped]
) -> Iterator[tuple[Entry[Content], Entry[Content]] | Skipped]:
    """The entries of two files with the same id, in the order of the first file.

    The second file is held in memory. An id that only one file has comes as `unmatched`, one that
    occurred before as `repeated`.
    """
    others: dict[str, Entry[Content]] = {}
    for entry in _distinct(second, 1):
        if isinstance(entry, Skipped):
            yield entry
        else:
            others[entry.id] = entry
    for entry in _distinct(first, 0):
        if isinstance(entry, Skipped):
            yield entry
        elif entry.id in others:
            yield entry, others.pop(entry.id)
        else:
            yield Skipped("unmatched", entry.shown, entry.line, 0)
    for entry in others.values():
        yield Skipped("unmatched", entry.shown, entry.line, 1)


def _distinct(
    entries: Iterator[Entry[Content] | Skipped], file: int
) -> Iterator[Entry[Content] | Skipped]:
    seen: set[str] = set()
    for entry in entries:
        if isinstance(entry, Skipped):
            yield entry.in_file(file)
        elif entry.id in seen:
            yield Skipped("repeated", entry.shown, entry.line, file)
        else:
            seen.add(entry.id)
            yield entry
