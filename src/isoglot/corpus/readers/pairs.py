"""Translations as tab-separated text, one pair a line, in two columns of it.

Many collections have more than the two texts in a line: languages, ids, scores, a second
reference. `first` and `second` say which columns hold the texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.files import read_lines
from isoglot.errors import require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsReader(Reader):
    """Pairs of translations, one a line. Another number of columns is counted under `columns`."""

    first: int = 1
    """The column of the first language's text, counted from 1."""
    second: int = 2
    """The column of the second language's text."""
    more: bool = False
    """Whether lines may have columns after the ones that are read."""
    header: bool = False
    """Whether the first line of a file names its columns; it is counted under `header`."""

    name = "tsv"
    kinds = ("pairs",)

    def __post_init__(self) -> None:
        require(min(self.first, self.second) >= 1, "columns are counted from 1")
        require(self.first != self.second, "first and second name the same column")

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        for file, path in enumerate(files):
            for number, line in enumerate(read_lines(path), start=1):
                if isinstance(line, Skipped):
                    yield line.in_file(file)
                elif number == 1 and self.header:
                    yield Skipped("header", line, number, file)
                else:
                    yield self._split(line, number, file)

    def _split(self, line: str, number: int, file: int) -> Record | Skipped:
        if not line.strip():
            return Skipped("blank", line, number, file)
        columns = line.split("\t")
        needed = max(self.first, self.second)
        if len(columns) != needed and not (self.more and len(columns) > needed):
            return Skipped("columns", line, number, file)
        return Record((columns[self.first - 1], columns[self.second - 1]), 0, number, file)
