"""Writes the tables of one unit of work: Parquet, some rows at a time, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from isoglot.corpus.disk import PARTIAL, writing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ROWS = 50_000
_TOLD = 20


class TableWriter:
    """A Parquet file that appears under its name when it is finished."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        """Opens a file beside `path`."""
        self._path = path
        self._partial = path.with_name(path.name + PARTIAL)
        self._schema = schema
        self._rows: list[tuple[Any, ...]] = []
        self.rows = 0
        """How many rows the finished file has."""
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._partial, schema, compression="zstd")

    def add(self, row: tuple[Any, ...]) -> None:
        """Adds one row, its values in the order of the schema."""
        self._rows.append(row)
        if len(self._rows) >= _ROWS:
            self._flush()

    def extend(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Adds several rows."""
        self._rows.extend(rows)
        if len(self._rows) >= _ROWS:
            self._flush()

    def _flush(self) -> None:
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(self._schema)
        arrays = [
            _array(column, field.type) for column, field in zip(columns, self._schema, strict=True)
        ]
        self.rows += len(self._rows)
        with writing(self._path):
            self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows = []

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Gives the file its name, or takes it away after an error."""
        if kind is not None:
            self._writer.close()
            self._partial.unlink(missing_ok=True)
            return
        self._flush()
        with writing(self._path):
            self._writer.close()
            self._partial.replace(self._path)


class Faults:
    """The first faults of a part, with where they are; the number of all is counted elsewhere."""

    def __init__(self) -> None:
        """None yet."""
        self.told: list[dict[str, Any]] = []

    def add(self, offset: int, fault: str) -> None:
        """Remembers one fault, unless there are many."""
        if len(self.told) < _TOLD:
            self.told.append({"offset": offset, "fault": fault})


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    """A column. Lists of structs are put together from their parts: several times faster."""
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
