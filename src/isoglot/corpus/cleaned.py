"""Cleaned text between the stages: what there is to clean, what came of it, and the files.

Each unit has a folder with train.txt and heldout.txt, temporary: tokenizer training samples them,
encoding reads them once. A line is `line TAB document TAB text` for text and `line TAB first TAB
second` for pairs, where `line` is the line of the raw file; cleaned text holds no tab.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from isoglot.corpus.cells import Cell, Unit
from isoglot.corpus.clean import CleanConfig
from isoglot.corpus.disk import writing
from isoglot.corpus.duplicates import DuplicatesConfig
from isoglot.corpus.duplicates.runs import rows_of
from isoglot.corpus.heldout import SPLITS, Split
from isoglot.corpus.pretokenize import Name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTask:
    """All that is needed to clean one unit, here or elsewhere."""

    unit: Unit
    inputs: tuple[str, ...]
    """SHA-256 of its files."""
    folder: Path
    """Where its cleaned text goes."""
    config: CleanConfig
    heldout_share: float
    heldout_seed: int
    pretokenize: dict[str, Name]
    duplicates: DuplicatesConfig
    partitions: int
    excluded: Path | None
    """The index of lines that must not be trained on."""
    excluded_files: tuple[tuple[str, str], ...]
    """Name and SHA-256 of the files in it."""
    dropped: Path | None
    """Where dropped lines are written."""
    piece_bytes: int
    """A place to start reading is noted after about this many bytes of text."""

    def path(self, split: Split) -> Path:
        """The cleaned text of one split."""
        return cleaned_file(self.folder, split)

    def hashes(self, kind: str) -> Path:
        """The hashes of its lines: `exact` or `near`."""
        return self.folder / f"{kind}.hashes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place in a file of cleaned text where a line starts."""

    row: int
    byte: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What became of every record of a unit, and where its cleaned text can be taken up."""

    lines: int
    """Lines (rows, segments) of the files."""
    read: int
    """Records: sentences or pairs; more than lines where lines were split."""
    bytes: int
    """UTF-8 bytes of the text read."""
    documents: int
    rows: dict[Split, int]
    marks: dict[Split, tuple[Mark, ...]]
    """The start of each piece of the cleaned text; last, its end."""
    dropped: dict[str, int]
    contaminated: dict[str, int] = field(default_factory=dict)
    """Evaluation file -> records dropped because of it."""
    seconds: float


def cleaned_file(folder: Path, split: Split) -> Path:
    """Where the cleaned text of one split lies."""
    return folder / f"{split}.txt"


def is_whole(task: CleanTask, cleaned: Cleaned) -> bool:
    """Is the cleaned text of a finished unit still there?"""
    return all(
        task.path(split).is_file()
        and task.path(split).stat().st_size == cleaned.marks[split][-1].byte
        for split in SPLITS
    )


class CleanedWriter:
    """The cleaned text of one split of a unit, with marks where it can be taken up."""

    def __init__(self, task: CleanTask, split: Split, stack: ExitStack) -> None:
        """The file is open until `close`, or until the stack unwinds."""
        self.rows = 0
        self._path = task.path(split)
        self._piece = task.piece_bytes
        self._byte = 0
        self._marks = [Mark(row=0, byte=0)]
        with writing(self._path):
            self._file: IO[bytes] = stack.enter_context(self._path.open("wb", 1 << 18))

    def write(self, line: str) -> int:
        """Adds a line; gives its row."""
        data = line.encode()
        try:
            self._file.write(data)
        except OSError as error:
            with writing(self._path):
                raise error from None
        row, self.rows = self.rows, self.rows + 1
        self._byte += len(data)
        if self._byte - self._marks[-1].byte >= self._piece:
            self._marks.append(Mark(row=self.rows, byte=self._byte))
        return row

    def close(self) -> tuple[Mark, ...]:
        """Writes what is left; gives the marks."""
        with writing(self._path):
            self._file.close()
        if self._marks[-1].byte != self._byte or len(self._marks) == 1:
            self._marks.append(Mark(row=self.rows, byte=self._byte))
        return tuple(self._marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """The repeated lines of one unit: which rows, and how many."""

    path: Path
    sha256: str
    rows: dict[Split, dict[str, int]]
    """Split -> reason -> rows that are left out for it."""


class CleanRecord(NamedTuple):
    """One line of cleaned text."""

    line: int
    """Its line in the raw file."""
    document: int
    """Counted over the cell; 0 for pairs."""
    texts: tuple[str, ...]
    reason: str | None
    """Why it is left out after all, if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Consecutive lines of the cleaned text of one unit."""

    cell: Cell
    key: str
    """A hash of all that the text was made of."""
    file: Path
    """The (first) raw file they come from."""
    text: Path
    split: Split
    start: Mark
    end: Mark
    documents_before: int
    """Documents of the cell in earlier units."""
    repeated: Repeated | None

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.end.byte - self.start.byte

    def records(self) -> Iterator[CleanRecord]:
        """Its lines."""
        reasons = self._reasons()
        is_text = self.cell.kind == "text"
        with self.text.open("rb") as file:
            file.seek(self.start.byte)
            for row in range(self.start.row, self.end.row):
                line, first, second = file.readline()[:-1].decode().split("\t")
                document = self.documents_before + int(first) if is_text else 0
                texts = (second,) if is_text else (first, second)
                yield CleanRecord(int(line), document, texts, reasons.get(row))

    def _reasons(self) -> dict[int, str]:
        """Row -> why it is left out."""
        found: dict[int, str] = {}
        if self.repeated is not None:
            with np.load(self.repeated.path, allow_pickle=False) as places:
                for reason in places.files:
                    rows = rows_of(places[reason], self.split)
                    lower, upper = np.searchsorted(rows, [self.start.row, self.end.row])
                    found.update(dict.fromkeys(rows[lower:upper].tolist(), reason))
        return found
