"""Files of cleaned text, and the stretches of them that later stages read.

Each file group, or part of a large file, has a folder. For the splits train and heldout there are

    train.txt       a text a line; the two of a pair with a tab between (cleaned text has none)
    train.numbers   for each line its line in the raw file and its document, two 64-bit integers

The text of a large file's parts, one after another, is that of the file read as a whole. A document
is counted from the first of its part.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from isoglot.atomic import write_array, write_errors
from isoglot.corpus.storage.shards import SPLITS, Kind, Split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack

    from isoglot.corpus.cleaning.stage import CleanResult, CleanTask
    from isoglot.types import LongArray

_SPLIT_BITS = 40
POSITION_BITS = _SPLIT_BITS + 1
"""Bits of `position_of`."""
OFFSET_BYTES = 1 << 19
"""An offset is noted after about this many bytes of text."""
_NUMBERS = 2
"""Integers of a line."""
_BUFFERED_LINES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The start of a line in a file of cleaned text."""

    row: int
    byte: int


class CleanTextWriter:
    """Writes the cleaned text of one split, and the numbers of its lines."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """The files are open until `close`, or until the stack unwinds."""
        self.rows = 0
        self._path = path
        self._byte = 0
        self._offsets = [Offset(row=0, byte=0)]
        self._next_offset = OFFSET_BYTES
        self._pending: list[tuple[int, int]] = []
        with write_errors(path):
            self._file: IO[bytes] = stack.enter_context(path.open("wb", 1 << 18))
            self._numbers: IO[bytes] = stack.enter_context(numbers_file(path).open("wb"))

    def write(self, lines: Sequence[bytes], numbers: Sequence[tuple[int, int]]) -> int:
        """Adds lines, with their lines in the raw file and documents; returns the first row."""
        first = self.rows
        self._pending += numbers
        try:
            if lines:
                self._file.write(b"\n".join(lines) + b"\n")
            if len(self._pending) >= _BUFFERED_LINES:
                self._flush_numbers()
        except OSError as error:
            with write_errors(self._path):
                raise error from None
        self.rows += len(lines)
        ends = self._byte + np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)) + 1)
        while (found := int(np.searchsorted(ends, self._next_offset))) < len(lines):
            byte = int(ends[found])
            self._offsets.append(Offset(row=first + found + 1, byte=byte))
            self._next_offset = byte + OFFSET_BYTES
        self._byte = int(ends[-1]) if len(lines) else self._byte
        return first

    def close(self) -> tuple[Offset, ...]:
        """Flushes the files; returns the offsets noted, and that of the end."""
        with write_errors(self._path):
            self._file.close()
            self._flush_numbers()
            self._numbers.close()
        if self._offsets[-1].byte != self._byte or len(self._offsets) == 1:
            self._offsets.append(Offset(row=self.rows, byte=self._byte))
        return tuple(self._offsets)

    def _flush_numbers(self) -> None:
        write_array(self._numbers, np.array(self._pending, np.int64).reshape(-1, _NUMBERS))
        self._pending.clear()


def numbers_file(text: Path) -> Path:
    """The file of the numbers of the lines of a file of cleaned text."""
    return text.with_suffix(".numbers")


def has_text(text: Path, end: Offset) -> bool:
    """Whether a file of cleaned text and that of its numbers are there, whole."""
    numbers = numbers_file(text)
    return (
        text.is_file()
        and text.stat().st_size == end.byte
        and numbers.is_file()
        and numbers.stat().st_size == 8 * _NUMBERS * end.row
    )


def offset_behind(text: Path, offsets: Sequence[Offset], byte: int) -> Offset:
    """The offset behind the first line of a file that ends at this byte or later."""
    noted = offsets[max(bisect_left(offsets, byte, key=lambda one: one.byte) - 1, 0)]
    with text.open("rb") as file:
        file.seek(noted.byte)
        row = noted.row + file.read(byte - 1 - noted.byte).count(b"\n")
        line = file.readline()
    assert line.endswith(b"\n"), f"{text} ends before byte {byte}"
    return Offset(row=row + 1, byte=byte - 1 + len(line))


def position_of(split: Split, row: int) -> int:
    """A row of one split of a file group as one number; rows of a split are contiguous."""
    return SPLITS.index(split) << _SPLIT_BITS | row


def rows_of(positions: LongArray, split: Split) -> LongArray:
    """The rows of one split among (sorted) positions."""
    start = position_of(split, 0)
    lower, upper = np.searchsorted(positions, [start, start + (1 << _SPLIT_BITS)])
    return positions[lower:upper] - start


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateRows:
    """The rows of one part that repeat earlier ones."""

    path: Path
    """A .npz file: reason -> positions."""
    sha256: str
    rows: dict[Split, dict[str, int]]
    """Split -> reason -> number of rows."""

    def read(self, split: Split) -> dict[str, LongArray]:
        """Reason -> rows of one split, sorted."""
        with np.load(self.path, allow_pickle=False) as positions:
            return {reason: rows_of(positions[reason], split) for reason in positions.files}


class CleanedGroup(NamedTuple):
    """A file group, or part of one, after cleaning and deduplication."""

    task: CleanTask
    result: CleanResult
    duplicates: DuplicateRows | None


class CleanRecord(NamedTuple):
    """One line of cleaned text."""

    line: int
    """Its line in the raw file."""
    document: int
    """Counted over the subset; 0 for pairs."""
    texts: tuple[str, ...]
    reason: str | None
    """Why it is dropped after all, if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    """Consecutive lines of one file of cleaned text."""

    key: str
    """A hash of everything that the text was made from."""
    text: Path
    split: Split
    start: Offset
    end: Offset
    documents_before: int
    """Documents of the subset before its file."""
    duplicates: DuplicateRows | None

    def records(self, kind: Kind) -> Iterator[CleanRecord]:
        """Its lines."""
        reasons = self._reasons()
        is_text, rows = kind == "text", self.end.row - self.start.row
        width = 8 * _NUMBERS
        found = np.fromfile(
            numbers_file(self.text), np.int64, rows * _NUMBERS, offset=width * self.start.row
        )
        numbers = found.reshape(rows, _NUMBERS).tolist()
        with self.text.open("rb") as file:
            file.seek(self.start.byte)
            for row, (line, document) in enumerate(numbers, start=self.start.row):
                text = file.readline()[:-1].decode()
                texts = (text,) if is_text else tuple(text.split("\t"))
                number = self.documents_before + document if is_text else 0
                yield CleanRecord(line, number, texts, reasons.get(row))

    def _reasons(self) -> dict[int, str]:
        """Row -> why it is dropped."""
        found: dict[int, str] = {}
        if self.duplicates is not None:
            for reason, rows in self.duplicates.read(self.split).items():
                lower, upper = np.searchsorted(rows, [self.start.row, self.end.row])
                found.update(dict.fromkeys(rows[lower:upper].tolist(), reason))
        return found
