"""Lines of a task's files with their numbers, and the error that names a damaged one.

Reads text, tables with a heading, JSON and JSON lines, plain or packed (.xz, .gz, .bz2, .zst).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isoglot.corpus.readers.base import Skipped
from isoglot.corpus.readers.files import read_lines
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def damaged(path: Path, where: int | str, what: str) -> CorpusError:
    """The error for a line (by number) or another place of a file."""
    place = f"line {where}" if isinstance(where, int) else where
    return CorpusError(f"{path}, {place}: {what} Fetch the file again, or mend the line.")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Each line with its number, from 1."""
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, Skipped):
            raise damaged(path, number, "is not UTF-8.")
        yield number, line


def latin_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Each line of a file that may be in Latin-1, as CoNLL-2002's originals are."""
    try:
        lines = [line for _, line in numbered_lines(path)]
    except CorpusError:
        if path.suffix in (".xz", ".gz", ".bz2", ".zst") or not path.is_file():
            raise
        lines = path.read_text(encoding="latin-1").splitlines()
    yield from enumerate(lines, start=1)


def table_rows(path: Path, *, optional: bool = False) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table whose first line names its columns, tabs between them.

    With `optional`, cells at the end of a row may be left out.
    """
    headings: list[str] | None = None
    for number, line in numbered_lines(path):
        cells = line.split("\t")
        if headings is None:
            headings = cells
            continue
        if len(cells) > len(headings) or (len(cells) < len(headings) and not optional):
            raise damaged(
                path, number, f"has {len(cells)} columns where the heading has {len(headings)}."
            )
        yield number, dict(zip(headings, cells, strict=False))


def cell(path: Path, number: int, row: dict[str, Any], *names: str) -> str:
    """The first named cell that a row has, not empty."""
    for name in names:
        if name in row:
            value = "" if row[name] is None else str(row[name]).strip()
            if not value:
                raise damaged(path, number, f"has nothing in column {name}.")
            return value
    raise damaged(path, number, f"has no column {' or '.join(names)}, only {', '.join(row)}.")


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """One JSON object a line; empty lines are passed over."""
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise damaged(path, number, f"is not JSON ({error}).") from error
        if not isinstance(found, dict):
            raise damaged(path, number, "is not a JSON object.")
        yield number, found


def whole_json(path: Path) -> Any:
    """A file that is one JSON value."""
    text = "\n".join(line for _, line in numbered_lines(path))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise damaged(
            path, error.lineno, f"is not JSON from column {error.colno} on ({error.msg})."
        ) from error
