"""The Parquet tables of an extraction: written by its tasks, opened by linking.

wikipedia/{language}/pages-*.parquet, sentences-*.parquet
wikidata/items-*.parquet, sitelinks-*.parquet, claims-*.parquet, properties-*.parquet
counts.json    written last: an extraction without it is incomplete
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from isoglot import json_text
from isoglot.atomic import replace_file, write_errors
from isoglot.errors import CorpusError, nearest
from isoglot.languages import find, from_wikipedia
from isoglot.locks import has_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COUNTS = "counts.json"
WORK = ".work"
"""Folder of task records, indexes and text that is not joined yet."""
_BATCH_ROWS = 50_000
_MAX_FAULTS = 20
_AGAIN = "Run isoglot knowledge extract."


def claim(output: Path) -> None:
    """Mark a folder as one of tables, also of interrupted ones; refuses one with other content."""
    ours = (output / WORK).is_dir() or (output / COUNTS).is_file()
    if not ours and has_files(output):
        raise CorpusError(
            f"{output}: is not empty and holds no tables of knowledge. Choose another output "
            "folder."
        )
    with write_errors(output):
        (output / WORK).mkdir(parents=True, exist_ok=True)


class ParquetTable:
    """Writes one Parquet file atomically, in a `with` block."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._buffer: list[tuple[Any, ...]] = []
        self._file = ExitStack()
        self.rows = 0
        """Rows of the finished file."""

    def add(self, row: tuple[Any, ...]) -> None:
        """Adds one row, its values in the order of the schema."""
        self.extend((row,))

    def extend(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Adds several rows."""
        self._buffer.extend(rows)
        if len(self._buffer) >= _BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        columns = zip(*self._buffer, strict=True) if self._buffer else [()] * len(self._schema)
        arrays = [
            _array(column, field.type) for column, field in zip(columns, self._schema, strict=True)
        ]
        self.rows += len(self._buffer)
        with write_errors(self._path):
            self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._buffer = []

    def __enter__(self) -> Self:
        with write_errors(self._path), ExitStack() as stack:
            partial = stack.enter_context(replace_file(self._path))
            self._writer = pq.ParquetWriter(partial, self._schema, compression="zstd")
            self._file = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        # an error of the last write, too, removes the temporary file
        self._file.push(self._close)
        self._file.__exit__(*error)

    def _close(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write what is left, unless there was an error; close the file."""
        try:
            if kind is None:
                self._flush()
        finally:
            with write_errors(self._path):
                self._writer.close()


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    """A column. Lists of structs are assembled from their fields: several times faster."""
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        return pa.array(values, kind)
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    members = list(zip(*(item for value in values for item in value), strict=True))
    fields = list(kind.value_type)
    columns = [
        pa.array(members[index] if members else (), field.type)
        for index, field in enumerate(fields)
    ]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)


class Faults:
    """The first faults of a slice with their offsets; their total is counted elsewhere."""

    def __init__(self) -> None:
        self.first: list[dict[str, Any]] = []

    def add(self, offset: int, fault: str) -> None:
        """Keeps one fault, unless 20 are kept already."""
        if len(self.first) < _MAX_FAULTS:
            self.first.append({"offset": offset, "fault": fault})


@dataclass(frozen=True, slots=True)
class ExtractedTables:
    """The tables of an extraction, and the languages wanted from them."""

    folder: Path
    languages: tuple[str, ...]

    @classmethod
    def open(cls, folder: Path, wanted: Sequence[str] = ()) -> ExtractedTables:
        """Opens the tables of the wanted languages, by default of all; all must be complete."""
        if not (folder / COUNTS).is_file():
            raise CorpusError(
                f"{folder}: holds no tables of dumps, or extracting them was interrupted: it has "
                f"no {COUNTS}. {_AGAIN}"
            )
        found = sorted(path.name for path in (folder / "wikipedia").glob("*") if path.is_dir())
        chosen = set[str]()
        for language in wanted:
            name = find(from_wikipedia(language), found, from_wikipedia)
            if name is None:
                hint = nearest(language, found) if found else "it has none at all."
                raise CorpusError(f"{folder}: has no Wikipedia in {language!r}; {hint}")
            chosen.add(name)
        tables = cls(folder, tuple(sorted(chosen or found)))
        if not tables.languages:
            raise CorpusError(
                f"{folder}: has no Wikipedia in any language. Name some dumps and extract them."
            )
        if not any((folder / "wikidata").glob("*.parquet")):
            raise CorpusError(
                f"{folder}: was extracted without Wikidata, which maps pages to entities. "
                "Name a dump (`wikidata: [latest-all.json.bz2]`) and extract again: the "
                "Wikipedias' tables are kept."
            )
        for name in ("sitelinks", "claims", "items"):
            tables.wikidata(name)
        for language in tables.languages:
            _check_columns(tables.wikipedia(language, "pages"))
            tables.wikipedia(language, "sentences")
        return tables

    def wikipedia(self, language: str, table: str) -> list[Path]:
        """The shards of `pages` or `sentences` of a language."""
        return self._shards(self.folder / "wikipedia" / language, table)

    def wikidata(self, table: str) -> list[Path]:
        """The shards of `items`, `sitelinks`, `claims` or `properties`."""
        return self._shards(self.folder / "wikidata", table)

    def has_properties(self) -> bool:
        """Are there labels of relations?"""
        return any((self.folder / "wikidata").glob("properties-*.parquet"))

    def check_heldout(self, share: float, seed: int) -> None:
        """Refuses to hold out facts that the pages of knowledge graphs tell."""
        try:
            told = json_text.parse((self.folder / COUNTS).read_text(encoding="utf-8"))["settings"]
        except (OSError, ValueError, KeyError, TypeError):
            told = {}
        least = told.get("heldout_share") if isinstance(told, dict) else None
        if least is not None and (share > least or (share > 0 and seed != told["heldout_seed"])):
            raise CorpusError(
                f"{self.folder}: pages tell all facts but a share of {least} with seed "
                f"{told['heldout_seed']}, so heldout_share {share} with heldout_seed {seed} would "
                "hold out facts that are told. Lower it, or write the tables again with "
                f"isoglot knowledge graph --set heldout_share={share} --set heldout_seed={seed}."
            )

    def digest(self) -> str:
        """A hash of names, sizes and times; hashing contents would take as long as linking."""
        files = [file for language in self.languages for file in self.wikipedia(language, "*")]
        states = [(file, file.stat()) for file in (*files, *self.wikidata("*"))]
        lines = (
            f"{file.relative_to(self.folder).as_posix()} {state.st_size} {state.st_mtime_ns}"
            for file, state in states
        )
        return sha256("\n".join(lines).encode()).hexdigest()

    def _shards(self, folder: Path, table: str) -> list[Path]:
        shards = sorted(folder.glob(f"{table}-*.parquet"))
        if not shards:
            raise CorpusError(f"{folder}: has no {table}-*.parquet. {_AGAIN}")
        return shards


def _check_columns(shards: Sequence[Path]) -> None:
    """Refuses tables of pages that an earlier version extracted, or damaged ones."""
    for shard in shards:
        try:
            names = pq.read_schema(shard).names
        except (pa.ArrowException, OSError) as error:
            raise CorpusError(f"{shard}: cannot be read ({error}). {_AGAIN}") from error
        if "opening" not in names:
            raise CorpusError(
                f"{shard}: has no column 'opening': another version of Isoglot wrote it. {_AGAIN}"
            )


def shard_number(shard: Path) -> int:
    """7 for `pages-00007.parquet`."""
    return int(shard.stem.rpartition("-")[2])
