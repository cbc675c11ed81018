"""Rows of a Hugging Face dataset folder: Parquet files of a repository, or Arrow files saved.

Labels that a dataset keeps as numbers come back as the names that the file's own schema gives them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa


def is_hub_file(path: Path) -> bool:
    """Is this a file of a Hugging Face dataset?"""
    return path.suffix in (".parquet", ".arrow")


def hub_rows(path: Path, *needed: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each row with its number, from 1; the needed columns are there."""
    table = _table(path)
    missing = [column for column in needed if column not in table.column_names]
    if missing:
        raise CorpusError(
            f"{path}: has no column {' or '.join(missing)}, only {', '.join(table.column_names)}. "
            "Fetch the dataset that docs/evaluate.md names."
        )
    names = _label_names(table.schema.metadata or {})
    for number, row in enumerate(table.to_pylist(), start=1):
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
