"""Reading a task's files: rows with their line numbers, and the error that names a damaged line.

Reads text, TSV and CSV with a header, JSON, JSON lines (plain, .xz, .gz, .bz2 or .zst), and Hugging
Face data sets (Parquet files of a repository, or the Arrow files of `save_to_disk`).
"""

from __future__ import annotations

import csv
import hashlib
import re
from itertools import chain
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

from isoglot import json_text
from isoglot.corpus.reading.files import read_lines
from isoglot.corpus.reading.reader import Skipped
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa


_COMPRESSED = ("", ".xz", ".gz", ".bz2", ".zst")
_ROWS_AT_ONCE = 10_000
"""Rows of a data set that are Python values at one time; LAMA's largest split has 1.3 million."""


def file_error(path: Path, where: int | str, what: str) -> CorpusError:
    """The error for a line (by number) or another place of a file."""
    place = f"line {where}" if isinstance(where, int) else where
    return CorpusError(f"{path}, {place}: {what} Fetch the file again, or correct the line.")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Each line with its number, from 1."""
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, Skipped):
            raise file_error(path, number, "is not UTF-8.")
        yield number, line


def latin1_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Each line of a file in UTF-8 or Latin-1, the encoding of CoNLL-2002's originals."""
    try:
        lines = [line for _, line in numbered_lines(path)]
    except CorpusError:
        if path.suffix in _COMPRESSED[1:] or not path.is_file():
            raise
        lines = path.read_text(encoding="latin-1").splitlines()
    yield from enumerate(lines, start=1)


class Row(dict[str, Any]):
    """One row of a file: column -> value, with its place for error messages."""

    def __init__(self, path: Path, number: int, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.path, self.number = path, number

    def text(self, *names: str) -> str:
        """The value of the first of the named columns that the row has; it must not be empty."""
        for name in names:
            if name in self:
                value = "" if self[name] is None else str(self[name]).strip()
                if not value:
                    raise self.error(f"has nothing in column {name}.")
                return value
        raise self.error(f"has no column {' or '.join(names)}, only {', '.join(self)}.")

    def error(self, what: str) -> CorpusError:
        """The error for this row."""
        return file_error(self.path, self.number, what)


def read_rows(
    files: Iterable[Path], *, hf_columns: Iterable[str] = (), optional: bool = False
) -> Iterator[Row]:
    """The rows of files: Hugging Face data sets, JSON lines, CSV or TSV, by the file's name.

    A Hugging Face data set must have `hf_columns`; `optional` is that of `tsv_rows`.
    """
    for path in files:
        if is_hf_file(path):
            yield from hf_rows(path, *hf_columns)
        elif ".jsonl" in path.name:
            yield from json_lines(path)
        elif ".csv" in path.name:
            yield from csv_rows(path)
        else:
            yield from tsv_rows(path, optional=optional)


def tsv_rows(path: Path, *, optional: bool = False) -> Iterator[Row]:
    """The rows of a TSV file with a header; `optional`: the last cells of a row may be missing.

    Quotes are characters like others, unless a row has too many cells: a tab may be quoted.
    """
    lines = numbered_lines(path)
    _, names = next(lines, (0, ""))
    header = names.split("\t")
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) > len(header) and '"' in line:
            cells = next(csv.reader([line], delimiter="\t"))
        if len(cells) > len(header) or (len(cells) < len(header) and not optional):
            what = f"has {len(cells)} columns and the header has {len(header)}."
            raise file_error(path, number, what)
        yield Row(path, number, dict(zip(header, cells, strict=False)))


def csv_rows(path: Path) -> Iterator[Row]:
    """The rows of a CSV file with a header; a quoted cell may hold commas and line ends."""
    reader = csv.reader(f"{line}\n" for _, line in numbered_lines(path))
    header: list[str] | None = None
    try:
        for cells in reader:
            if header is None:
                header = [name.strip().removeprefix("\ufeff") for name in cells]
            elif cells and len(cells) != len(header):
                what = f"has {len(cells)} columns and the header has {len(header)}."
                raise file_error(path, reader.line_num, what)
            elif cells:
                yield Row(path, reader.line_num, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise file_error(path, reader.line_num, f"is not CSV ({error}).") from error


def json_lines(path: Path) -> Iterator[Row]:
    """One JSON object per line; empty lines are skipped."""
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            found = json_text.parse(line)
        except ValueError as error:
            raise file_error(path, number, f"is not JSON ({error}).") from error
        if not isinstance(found, dict):
            raise file_error(path, number, "is not a JSON object.")
        yield Row(path, number, found)


def read_json(path: Path) -> Any:
    """A file that is one JSON value."""
    text = "\n".join(line for _, line in numbered_lines(path))
    try:
        return json_text.parse(text)
    except JSONDecodeError as error:
        what = f"is not JSON from column {error.colno} on ({error.msg})."
        raise file_error(path, error.lineno, what) from error


def file_beside(path: Path, name: str) -> Path:
    """The file of a name in the folder of another, compressed or not; as named if missing."""
    found = (path.with_name(name + ending) for ending in _COMPRESSED)
    return next((file for file in found if file.is_file()), path.with_name(name))


def file_with_ending(path: Path, ending: str, other: str) -> Path:
    """The file whose name ends in `.other` where this one's ends in `.ending`."""
    name = re.sub(rf"\.{re.escape(ending)}(\.(xz|gz|bz2|zst))?$", f".{other}", path.name)
    return file_beside(path, name)


def parallel_lines(first: Path, second: Path) -> list[tuple[str, str]]:
    """The lines of two files, in pairs."""
    sides = [[line for _, line in numbered_lines(path)] for path in (first, second)]
    lengths = [len(side) for side in sides]
    if lengths[0] != lengths[1]:
        where = min(lengths) + 1
        raise file_error(second, where, f"{lengths[1]} lines, but {first.name} has {lengths[0]}.")
    return list(zip(*sides, strict=True))


def files_fingerprint(files: Iterable[Path]) -> str:
    """SHA-256 over the names and the content of files."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0")
        try:
            with path.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            raise CorpusError(f"{path}: cannot be read ({error.strerror}).") from error
    return digest.hexdigest()


def is_hf_file(path: Path) -> bool:
    """Whether this is a file of a Hugging Face data set."""
    return path.suffix in (".parquet", ".arrow")


def hf_config_name(path: Path) -> str:
    """The config of the Hugging Face data set of a file: the name of its folder."""
    return (path.parent if path.suffix == ".parquet" else path.parent.parent).name


def hf_rows(path: Path, *required: str, where: tuple[str, str] | None = None) -> Iterator[Row]:
    """The rows of a Parquet or Arrow file of a Hugging Face data set; class labels are names.

    The file must have the `required` columns; `where` is a column and the value of the rows wanted.
    """
    import pyarrow.compute as pc

    table = _read_table(path)
    missing = [name for name in required if name not in table.column_names]
    if missing:
        raise CorpusError(
            f"{path}: has no column {' or '.join(missing)}, only {', '.join(table.column_names)}. "
            "Fetch the data set that docs/tasks.md names."
        )
    label_names = _label_names(table.schema.metadata or {})
    numbers: Iterable[int] = range(1, table.num_rows + 1)
    if where is not None:
        places = pc.indices_nonzero(pc.equal(table[where[0]], where[1]))
        table, numbers = table.take(places), pc.add(places, 1).to_pylist()
    rows = chain.from_iterable(batch.to_pylist() for batch in table.to_batches(_ROWS_AT_ONCE))
    for number, row in zip(numbers, rows, strict=True):
        for name, labels in label_names.items():
            row[name] = _to_names(row[name], labels)
        yield Row(path, number, row)


def _read_table(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import ipc, parquet

    try:
        if path.suffix == ".parquet":
            return parquet.read_table(path)
        with pa.memory_map(str(path)) as source:
            return ipc.open_stream(source).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise CorpusError(f"{path}: is damaged ({error}). Fetch the file again.") from error


def _label_names(metadata: dict[bytes, bytes]) -> dict[str, list[str]]:
    """Column -> names of its labels, for columns of `ClassLabel` and of lists of it."""
    said = json_text.parse(metadata.get(b"huggingface", b"{}"))
    found = {}
    for name, feature in said.get("info", {}).get("features", {}).items():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else feature
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            found[name] = inner["names"]
    return found


def _to_names(value: Any, labels: list[str]) -> Any:
    if isinstance(value, list):
        return [_to_names(item, labels) for item in value]
    return labels[value] if isinstance(value, int) and 0 <= value < len(labels) else value
