"""How tables are read: objects of JSON lines, rows of Parquet, Arrow and CSV, by their columns.

    first rows --names, contents (`columns`)--> options of the reader, split

A CSV file without a first row of names is read by the numbers of its columns.
"""

from __future__ import annotations

from collections import deque
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

from isoglot.adaptation.columns import choose_fields, has_named_fields, in_order
from isoglot.corpus.cleaning.column_order import are_swapped
from isoglot.corpus.reading.csv_table import DELIMITERS, look_at, rows_of
from isoglot.corpus.reading.files import read_lines
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.corpus.cleaning.sentences import SplitMode

SAMPLED = 500
"""Lines or rows that are looked at."""
MAX_BAD_SHARE = 0.05
"""Share of them that may not fit a format."""
_PARAGRAPH_CHARACTERS = 300
"""Lines that are longer on average are paragraphs, and are split into sentences."""
_FEW_ROWS = 3
_NAME_WORDS = 3
"""Most words of the name of a column."""


class FileFormat(NamedTuple):
    """How a file is read."""

    format: str
    """Name of the reader."""
    options: dict[str, str | int | bool]
    split: SplitMode = "lines"
    single: bool = False
    """For pairs: it has one column, so that the other language is in another file."""
    note: str = ""
    """What a user may not expect."""


def fields_format(
    path: Path,
    rows: Sequence[dict[str, Any]],
    languages: Sequence[str],
    reader: str,
    option: str,
) -> FileFormat:
    """The fields of objects or rows that hold text; `option` of the reader names the only one."""
    samples: dict[str, list[str]] = {}
    for row in rows:
        for name, text in _strings(row, ""):
            samples.setdefault(name, []).append(text)
    names = choose_fields(path, samples, languages)
    if len(names) == 2:
        first, second = in_order((names[0], names[1]), samples, languages)
        note = ""
        if first != names[0]:
            note = (
                f"{path}: the {option} {first} looks like {languages[0]} and {second} like "
                f"{languages[1]}; they are read so."
            )
        return FileFormat(reader, {"first": first, "second": second}, note=note)
    options: dict[str, str | int | bool] = {} if names[0] == "text" else {option: names[0]}
    return FileFormat(reader, options, split_of(samples[names[0]]))


def _strings(value: dict[str, Any], prefix: str) -> list[tuple[str, str]]:
    found = []
    for name, inner in value.items():
        if isinstance(inner, str):
            found.append((prefix + name, inner))
        elif isinstance(inner, dict) and not prefix:
            found += _strings(inner, f"{name}.")
    return found


def parquet_format(path: Path, languages: Sequence[str]) -> FileFormat:
    """Columns of a Parquet or Arrow file."""
    import pyarrow as pa

    from isoglot.corpus.reading.parquet import read_batches

    rows: list[dict[str, Any]] = []
    try:
        for batch in read_batches(path):
            rows += batch.slice(0, SAMPLED).to_pylist()
            if rows:
                break
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0]
        raise CorpusError(
            f"{path}: cannot be read as Parquet or Arrow ({reason}). Download or make the file "
            "again."
        ) from error
    if not rows:
        raise CorpusError(f"{path}: has no rows. Name a file with text.")
    return fields_format(path, rows, languages, "parquet", "column")


def is_csv(path: Path, first: str, languages: Sequence[str]) -> bool:
    """Whether a file of another ending is CSV: its first row names columns of these languages."""
    if not any(delimiter in first for delimiter in DELIMITERS) or "\t" in first:
        return False
    table = look_at(path)
    names = {name.strip() for name in table.rows[0]} if table.rows else set()
    alike = [row for row in table.rows if len(row) == table.width]
    return (
        len(names) > 1
        and len(alike) > 1
        and all(map(_is_name, names))
        and len(table.rows) - len(alike) <= MAX_BAD_SHARE * len(table.rows)
        and has_named_fields(names, languages)
    )


def csv_format(path: Path, languages: Sequence[str]) -> FileFormat:
    """Columns of a CSV file, by their names in its first row or else by their numbers."""
    table = look_at(path)
    if len(table.rows) < _FEW_ROWS:  # a quote that is not closed may swallow all others
        deque(rows_of(path, enumerate(read_lines(path), start=1), table.delimiter), maxlen=0)
    rows = [row for row in table.rows if len(row) == table.width]
    if not rows:
        raise CorpusError(
            f"{path}: has no row that can be read as CSV. Write one row on each line, with quotes "
            "around cells that hold delimiters, quotes or line ends."
        )
    if len(table.rows[0]) != table.width:
        raise CorpusError(
            f"{path}: its first row has {len(table.rows[0])} cells, and most rows have "
            f"{table.width}. Delete what stands above the row with the names of the columns."
        )
    if len(rows) > 1 and all(map(_is_name, rows[0])):
        return _named_columns(path, rows, languages)
    return _numbered_columns(path, rows, languages)


def _named_columns(
    path: Path, rows: Sequence[Sequence[str]], languages: Sequence[str]
) -> FileFormat:
    """Columns that the first row names; those without a letter hold no text."""
    texts = []
    for row in rows[1:]:
        cells = zip(rows[0], row, strict=True)
        texts.append({name.strip(): cell for name, cell in cells if _has_letters(cell)})
    return fields_format(path, texts, languages, "csv", "column")


def _numbered_columns(
    path: Path, rows: Sequence[Sequence[str]], languages: Sequence[str]
) -> FileFormat:
    """Columns of a file whose first row is a text or pair."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    places = [place for place, column in enumerate(columns, 1) if any(map(_has_letters, column))]
    if len(places) != len(languages):
        raise CorpusError(
            f"{path}: has {len(places)} column{'s' * (len(places) != 1)} with text, and no first "
            "row that names them. Write one, with "
            f"{'`text`' if len(languages) == 1 else ' and '.join(languages)} over the text."
        )
    options: dict[str, str | int | bool] = {"header": False}
    if len(languages) == 1:
        return FileFormat("csv", options | {"column": places[0]}, split_of(columns[places[0] - 1]))
    first, second = places
    note = ""
    if are_swapped(columns[first - 1], columns[second - 1], languages):
        first, second = second, first
        note = (
            f"{path}: column {first} looks like {languages[0]} and column {second} like "
            f"{languages[1]}; they are read so."
        )
    return FileFormat("csv", options | {"first": first, "second": second}, note=note)


def _is_name(cell: str) -> bool:
    """Whether a cell may name a column, and is no sentence."""
    return len(cell.split()) <= _NAME_WORDS and cell.strip()[-1:] not in (*".!?,;:。！？।؟",)


def _has_letters(cell: str) -> bool:
    return any(map(str.isalpha, cell))


def split_of(texts: Sequence[str]) -> SplitMode:
    """Whether texts are sentences, one a line, or paragraphs to be split."""
    stripped = (line.strip() for text in texts for line in text.splitlines())
    lines = [line for line in stripped if line]
    long = bool(lines) and mean(map(len, lines)) > _PARAGRAPH_CHARACTERS
    return "punctuation" if long else "lines"
