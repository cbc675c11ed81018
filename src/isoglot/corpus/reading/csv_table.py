"""CSV: tables of text as spreadsheets export them (RFC 4180), a text or a pair in each row.

    lines --rows_of--> cells of each row --CsvReader--> records
    first lines --look_at--> delimiter, first rows

A cell in double quotes may hold delimiters, line ends and doubled quotes, so a row may have several
lines, and a file is read from its start by one task. Cells are those of Python's csv module in its
strict mode; line ends inside of them become LF, and a cell may have up to 64 MiB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from statistics import mode
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typing_extensions import override

from isoglot.corpus.reading.files import MAX_LINE_BYTES, read_lines
from isoglot.corpus.reading.reader import Reader, Record, Skipped
from isoglot.errors import CorpusError, nearest, require
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    Lines = Iterator[tuple[int, str | Skipped]]
    """Lines with their numbers, counted from 1."""

Column = Annotated[str | int, Range(1, 10_000)]
"""The name of a column, or its number, from 1."""
DELIMITERS = (",", ";", "\t", "|")
"""Characters between cells that are looked for."""
_NONE = "\x1f"
"""Delimiter of a table of one column: a control character that no text has."""
_SAMPLED = 500
"""Lines that are looked at."""
_SAMPLED_CHARACTERS = 1 << 20
_HALF = 0.5
"""Share of the rows that must have as many cells as the first."""
_MOSTLY = 0.9
"""Share that must have another number of cells, all the same: the first is a title, perhaps."""
_SHOWN = 20
"""Columns that a message names, and characters of their names."""
_QUOTED = re.compile(r'[^"]*+(?:""[^"]*+)*+')
"""The rest of a line that is inside of quotes, up to the one that closes them."""


class Table(NamedTuple):
    """The beginning of a file."""

    delimiter: str
    rows: list[list[str]]
    """Those of the first rows that can be read."""

    @property
    def width(self) -> int:
        """Cells of most rows; 0 without rows."""
        return mode(map(len, self.rows)) if self.rows else 0


def look_at(path: Path, delimiter: str = "") -> Table:
    """The first rows of a file, and the delimiter: the given one, or the one that fits best.

    That is the one with which most rows have as many cells as the first, two at least.
    """
    lines: list[tuple[int, str | Skipped]] = []
    characters = 0
    for number, line in enumerate(islice(read_lines(path), _SAMPLED), start=1):
        lines.append((number, line))
        characters += len(line) if isinstance(line, str) else 0
        if characters > _SAMPLED_CHARACTERS:
            break
    found: list[tuple[bool, float, Table]] = []
    for one in (delimiter,) if delimiter else DELIMITERS:
        rows, number = _first_rows(path, iter(lines), one)
        table = Table(one, rows)
        alike = sum(len(row) == table.width for row in rows) / max(number, 1)
        first = bool(rows) and len(rows[0]) == table.width
        if delimiter or (table.width > 1 and alike >= (_HALF if first else _MOSTLY)):
            found.append((first, alike, table))
    if not found:
        return Table(_NONE, _first_rows(path, iter(lines), _NONE)[0])
    return max(found, key=lambda one: one[:2])[2]


def _first_rows(path: Path, lines: Lines, delimiter: str) -> tuple[list[list[str]], int]:
    """The rows that can be read, and the number of all up to a quote that is not closed."""
    rows: list[list[str]] = []
    number = 0
    try:
        for _, cells in rows_of(path, lines, delimiter):
            if isinstance(cells, list):
                rows.append(cells)
            number += isinstance(cells, list) or cells.reason != "blank"
    except CorpusError:
        pass  # it may be closed behind the lines that are looked at
    return rows, number


def rows_of(path: Path, lines: Lines, delimiter: str) -> Iterator[tuple[int, list[str] | Skipped]]:
    """The number of the first line of each row, and its cells, or why it has none.

    A row of one line whose quotes do not fit is skipped as `quotes`.

    Raises:
        CorpusError: quotes do not fit and have a line end inside, so that nobody knows where the
            row ends.
    """
    for number, line in lines:
        if isinstance(line, Skipped):
            yield number, line
        elif '"' in line:
            yield number, _quoted_row(path, number, line, lines, delimiter)
        elif line.strip():
            yield number, line.split(delimiter)
        else:
            yield number, Skipped("blank", line, number)


def _quoted_row(
    path: Path, number: int, line: str, lines: Lines, delimiter: str
) -> list[str] | Skipped:
    """The cells of a row with quotes, which may go on in the next lines."""
    first = line
    cells: list[str] = []
    unreadable: Skipped | None = None
    begun = last = number
    start = 0
    while True:
        if line.startswith('"', start):
            opened, parts, size = last, list[str](), 0
            start += 1
            while (end := _end_of_quoted(line, start)) == len(line):
                parts.append(line[start:])
                size += len(line)
                found = next(lines, None)
                if found is None or size > MAX_LINE_BYTES:
                    raise CorpusError(
                        f"{path}, line {opened}: the quote that opens a cell here is not closed. "
                        "Close it, or put the cell in quotes and double those inside of it."
                    )
                last, following = found
                unreadable = following if isinstance(following, Skipped) else unreadable
                line, start = (following if isinstance(following, str) else ""), 0
            cells.append("\n".join([*parts, line[start:end]]).replace('""', '"'))
            end += 1
            if end < len(line) and line[end] != delimiter:
                if last == begun:
                    return Skipped("quotes", first, begun)
                raise CorpusError(
                    f"{path}, line {opened}: the quote that opens a cell here is closed in line "
                    f"{last}, where text follows. Close it at the end of the cell, and double "
                    "quotes inside of cells."
                )
        else:
            end = line.find(delimiter, start)
            end = end if end >= 0 else len(line)
            cells.append(line[start:end])
        if end == len(line):
            return cells if unreadable is None else Skipped(unreadable.reason, first, begun)
        start = end + 1


def _end_of_quoted(line: str, start: int) -> int:
    match = _QUOTED.match(line, start)
    assert match is not None, "it matches no character, too"
    return match.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvReader(Reader):
    """A table with a text in one column, or a pair in two. A row is a document.

    Columns are named as in the first row, or numbered. A row with another number of cells than that
    is counted under `columns`, one whose quotes do not fit under `quotes`.
    """

    column: Column = "text"
    """The column that holds the text: its name in the first row, or its number, from 1."""
    first: Column = ""
    """For pairs, the column of the first language's text; by default the language's name."""
    second: Column = ""
    """For pairs, the column of the second language's text."""
    delimiter: str = ""
    """The character between cells; by default comma, semicolon, tab or bar: the one that fits."""
    header: bool = True
    """Whether the first row of a file names its columns; it is counted under `header`."""

    name = "csv"
    kinds = ("text", "pairs")

    def __post_init__(self) -> None:
        check_ranges(self)
        require(
            not self.delimiter or (len(self.delimiter) == 1 and self.delimiter not in '"\r\n'),
            f"delimiter: expected one character, got {self.delimiter!r}",
        )
        for one in self._wanted():
            require(
                self.header or isinstance(one, int),
                "without a header, columns are numbers: "
                + ("first: 1, second: 2" if self.pairs else "column: 1"),
            )
        wanted = self._wanted()
        require(len({*wanted}) == len(wanted), "first and second name the same column")

    def _wanted(self) -> tuple[str | int, ...]:
        """The columns to read."""
        if not self.pairs:
            return (self.column,)
        given = zip((self.first, self.second), self.languages, strict=True)
        return tuple(language if one == "" else one for one, language in given)

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        document = 0
        for file, path in enumerate(files):
            table = look_at(path, self.delimiter)
            places: list[int] = []
            width = 0
            lines = enumerate(read_lines(path), start=1)
            for number, cells in rows_of(path, lines, table.delimiter):
                if isinstance(cells, Skipped):
                    if not width and self.header and cells.reason != "blank":
                        raise CorpusError(
                            f"{path}, line {number}: the row with the names of the columns cannot "
                            f"be read ({_UNREADABLE[cells.reason]})."
                        )
                    yield cells.in_file(file)
                    continue
                if not width:
                    width = len(cells) if self.header else table.width
                    places = self._places(path, cells if self.header else [], width)
                    if self.header:
                        yield Skipped("header", table.delimiter.join(cells), number, file)
                        continue
                if len(cells) != width:
                    yield Skipped("columns", table.delimiter.join(cells), number, file)
                    continue
                texts = tuple(cells[place] for place in places)
                yield Record(texts, 0 if self.pairs else document, number, file)
                document += 1

    def _places(self, path: Path, header: Sequence[str], width: int) -> list[int]:
        """Where in a row the texts are."""
        names = [name.strip() for name in header]
        return [_place(path, one, names, width) for one in self._wanted()]


_UNREADABLE = {
    "encoding": "it is not UTF-8; write the file as UTF-8, for example with iconv",
    "endless": "it has more than 64 MiB",
    "quotes": "text follows a closing quote",
}


def _place(path: Path, wanted: str | int, header: Sequence[str], width: int) -> int:
    if isinstance(wanted, int):
        if wanted > width:
            raise CorpusError(f"{path}: has {width} columns, and column {wanted} is to be read.")
        return wanted - 1
    if header.count(wanted) == 1:
        return header.index(wanted)
    if wanted in header:
        raise CorpusError(
            f"{path}: has {header.count(wanted)} columns {wanted!r}. Name the one to read by its "
            "number, counted from 1."
        )
    # the first row may be a text, or no text at all
    names = [repr(name[:_SHOWN])[1:-1] for name in header[:_SHOWN] if name]
    hint = nearest(wanted, names) if names else "its first row names none."
    raise CorpusError(f"{path}: has no column {wanted!r}; {hint}")
