"""Rows of a Hugging Face dataset folder: Parquet files of a repository, or Arrow files saved.

Labels that a dataset keeps as numbers come back as the names that the file's own schema gives them.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

_ROWS_AT_ONCE = 10_000
"""Rows that stand in memory as Python's values; LAMA's largest part has 1.3 million."""


def is_hub_file(path: Path) -> bool:
    """Is this a file of a Hugging Face dataset?"""
    return path.suffix in (".parquet", ".arrow")


def hub_config(path: Path) -> str:
    """The config of the dataset that a file is of: the name of its folder."""
    return (path.parent if path.suffix == ".parquet" else path.parent.parent).name


def hub_rows(
    path: Path, *needed: str, where: tuple[str, str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each row with its number, from 1; the needed columns are there.

    `where` names one of them and what it must have: other rows are passed over.
    """
    import pyarrow.compute as pc

    table = _table(path)
    missing = [column for column in needed if column not in table.column_names]
    if missing:
        raise CorpusError(
            f"{path}: has no column {' or '.join(missing)}, only {', '.join(table.column_names)}. "
            "Fetch the dataset that docs/evaluate.md names."
        )
    names = _label_names(table.schema.metadata or {})
    numbers: Iterable[int] = range(1, table.num_rows + 1)
    if where is not None:
        places = pc.indices_nonzero(pc.equal(table[where[0]], where[1]))
        table, numbers = table.take(places), pc.add(places, 1).to_pylist()
    rows = chain.from_iterable(batch.to_pylist() for batch in table.to_batches(_ROWS_AT_ONCE))
    for number, row in zip(numbers, rows, strict=True):
        for column, labels in names.items():
            row[column] = _named(row[column], labels)
        yield number, row


def _table(path: Path) -> pa.Table:
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
    """Names of the labels of each column that has some (`ClassLabel`), also inside lists."""
    said = json.loads(metadata.get(b"huggingface", b"{}"))
    features = said.get("info", {}).get("features", {})
    found = {}
    for column, feature in features.items():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else feature
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            found[column] = inner["names"]
    return found


def _named(value: Any, labels: list[str]) -> Any:
    if isinstance(value, list):
        return [_named(item, labels) for item in value]
    return labels[value] if isinstance(value, int) and 0 <= value < len(labels) else value
