"""Pairs of translations: two columns of one file, or two files, by line number or by id."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

from typing_extensions import override

from isoglot.corpus.reading.files import read_lines, read_objects, shown_object, text_at
from isoglot.corpus.reading.reader import Entry, LineReader, Reader, Record, Skipped, join_by_id
from isoglot.errors import CorpusError, require
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.corpus.reading.line_ranges import LineRange


@dataclass(frozen=True, slots=True, kw_only=True)
class TsvReader(LineReader):
    """Tab-separated text, a pair a line, in the columns `first` and `second`.

    A line with another number of columns is counted under `columns`.
    """

    first: Annotated[int, Range(1, 10_000)] = 1
    """The column of the first language's text, counted from 1."""
    second: Annotated[int, Range(1, 10_000)] = 2
    """The column of the second language's text."""
    more: bool = False
    """Whether lines may have columns after the ones that are read."""
    header: bool = False
    """Whether the first line of a file names its columns; it is counted under `header`."""

    name = "tsv"
    kinds = ("pairs",)

    def __post_init__(self) -> None:
        check_ranges(self)
        require(self.first != self.second, "first and second name the same column")

    @override
    def read_ranges(
        self, files: Sequence[Path], ranges: Sequence[LineRange]
    ) -> Iterator[Record | Skipped]:
        for file, (path, wanted) in enumerate(zip(files, ranges, strict=True)):
            for number, line in enumerate(read_lines(path, wanted), start=wanted.first):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MosesReader(LineReader):
    """Two files that are parallel line by line, as Moses has them.

    A line that is blank in both is counted under `blank`.
    """

    name = "moses"
    kinds = ("pairs",)
    together = 2

    @override
    def read_ranges(
        self, files: Sequence[Path], ranges: Sequence[LineRange]
    ) -> Iterator[Record | Skipped]:
        first, second = files
        lines = zip_longest(*map(read_lines, files, ranges))
        for number, (one, other) in enumerate(lines, start=ranges[0].first):
            if one is None or other is None:
                shorter, longer = number - 1, number + sum(1 for _ in lines)
                counts = (shorter, longer) if one is None else (longer, shorter)
                raise CorpusError(
                    f"{first}: has {counts[0]:,} lines, but {second} has {counts[1]:,}. Lines are "
                    "missing in one of them, so that the pairs after them are wrong: fetch or make "
                    "both again."
                )
            if isinstance(one, Skipped):
                yield one
            elif isinstance(other, Skipped):
                yield other.in_file(1)
            elif not one.strip() and not other.strip():
                yield Skipped("blank", line=number)
            else:
                yield Record((one, other), 0, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedReader(Reader):
    """Two files of `id TAB text`, joined by id: verses, documents, segments.

    The first file gives the order; the second is held in memory. The two lines of a pair count as
    one record. An id that only one file has is counted under `unmatched`, an id that occurred
    before under `repeated`, a line without a tab under `columns`.
    """

    name = "keyed"
    kinds = ("pairs",)
    together = 2

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        for found in join_by_id(_entries(files[0]), _entries(files[1])):
            if isinstance(found, Skipped):
                yield found
            else:
                first, second = found
                yield Record((first.content, second.content), 0, first.line)


def _entries(path: Path) -> Iterator[Entry[str] | Skipped]:
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, Skipped):
            yield line
            continue
        key, tab, text = line.partition("\t")
        if tab and line.strip():
            yield Entry(key, text, number, line)
        else:
            yield Skipped("columns" if line.strip() else "blank", line, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableReader(Reader):
    """Two files of JSON lines, a document a line, joined by id, as pairs of paragraphs.

    Paragraphs are lines that are not blank, aligned by their lengths
    (`reading.paragraph_alignment`). One in no pair is counted under `unaligned`, documents as in
    format `keyed`.
    """

    id: str = "id"
    """The field that holds the id of a document, the same in both languages."""
    field: str = "text"
    """The field that holds its text."""

    name = "comparable"
    kinds = ("pairs",)
    together = 2

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        document = 0
        for found in join_by_id(self._documents(files[0]), self._documents(files[1])):
            if isinstance(found, Skipped):
                yield found
            else:
                yield from _paired(*found, document)
                document += 1

    def _documents(self, path: Path) -> Iterator[Entry[list[str]] | Skipped]:
        """The paragraphs of each document."""
        for number, found in read_objects(path):
            if isinstance(found, Skipped):
                yield found
                continue
            key, text = text_at(found, self.id), text_at(found, self.field)
            if key is None or text is None:
                yield Skipped("no field", shown_object(found), number)
            else:
                yield Entry(key, [line for line in text.splitlines() if line.strip()], number, key)


def _paired(
    first: Entry[list[str]], second: Entry[list[str]], document: int
) -> Iterator[Record | Skipped]:
    """The pairs of two documents, then the unaligned paragraphs of the first and of the second."""
    from isoglot.corpus.reading.paragraph_alignment import align_paragraphs

    pairs = align_paragraphs(first.content, second.content)
    for i, j in pairs:
        yield Record((first.content[i], second.content[j]), document, first.line)
    if not pairs:
        yield Skipped("unaligned", line=first.line)
    for file, entry in enumerate((first, second)):
        aligned = {pair[file] for pair in pairs}
        for index, text in enumerate(entry.content):
            if index not in aligned:
                yield Skipped("unaligned", text, entry.line, file)
