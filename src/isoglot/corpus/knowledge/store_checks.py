"""Checks on rows on their way into the knowledge store: their order, their lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

Rows: TypeAlias = pa.RecordBatch | pa.Table
"""How rows come: batches or whole tables."""


def check_order(
    path: Path,
    batch: Rows,
    order: tuple[str, ...],
    last: tuple[int, ...] | None,
    *,
    repeats: bool,
) -> tuple[int, ...] | None:
    """Raises unless rows ascend by these columns, also after the last row before them."""
    if not order:
        return None
    keys = [np.asarray(batch.column(name), np.int64) for name in order]
    if last is not None:
        keys = [np.concatenate([[value], key]) for value, key in zip(last, keys, strict=True)]
    ascending = np.full(len(keys[0]) - 1, repeats)
    for key in reversed(keys):
        step = np.diff(key)
        ascending = (step > 0) | ((step == 0) & ascending)
    if not ascending.all():
        place = int((~ascending).argmax())
        raise CorpusError(
            f"{path}: rows are not sorted by {', '.join(order)}, or one is there twice: "
            f"{[int(key[place]) for key in keys]} comes before "
            f"{[int(key[place + 1]) for key in keys]}."
        )
    return tuple(int(key[-1]) for key in keys)


def check_lengths(path: Path, batch: Rows, longest: int) -> None:
    """Raises unless every row has from 1 to so many tokens."""
    lengths = np.asarray(pc.list_value_length(batch.column("tokens")))
    if lengths.min() < 1 or lengths.max() > longest:
        raise CorpusError(f"{path}: a description has from 1 to {longest} tokens, not others.")
