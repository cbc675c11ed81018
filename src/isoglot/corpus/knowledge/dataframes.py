"""Daft dataframes over Parquet files, for the joins of linking; on this machine or a Ray cluster.

Daft's native engine needs no server and reads more than memory holds. Rows come in no fixed order:
readers of a result sort it, so that neither engine nor number of partitions changes the store.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from isoglot.atomic import replace_folder, write_errors
from isoglot.corpus.engine.cluster import connect
from isoglot.corpus.engine.runner import LOCAL
from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SHARD = "shard"
"""The column with the number of a row's shard."""

EMPTY = "empty.parquet"
"""The file in a written folder that has no rows, for the schema."""
_chosen: list[str] = []


def choose_engine(cluster: str = LOCAL) -> None:
    """Sets where the dataframes of this process run; a second, different choice is refused.

    `cluster` is `local` for this process itself, `auto` for the Ray cluster that this machine
    belongs to, or the address of one (`ray://host:10001`).
    """
    if _chosen:
        if _chosen[0] != cluster:
            raise IsoglotError(
                f"Joins of this process run on {_chosen[0]!r} already and cannot move to "
                f"{cluster!r}. Start another process."
            )
        return
    daft = _daft()
    if cluster == LOCAL:
        daft.set_runner_native()
    else:
        connect(cluster)
        daft.set_runner_ray(noop_if_initialized=True)
    _chosen.append(cluster)


def read(files: Sequence[Path], columns: Sequence[str]) -> Any:
    """A dataframe of these columns of shards, `NAME-00007.parquet`; `shard` is their number, 7."""
    from daft import DataType, col

    assert all(re.search(r"-\d{5}\.parquet$", file.name) for file in files), "shards are numbered"
    frame = _daft().read_parquet([str(file) for file in files], file_path_column=SHARD)
    # by character position: a regular expression for every row takes longer than a join
    number = col(SHARD).right(len("00007.parquet")).left(len("00007")).cast(DataType.int32())
    return frame.select(*columns, number.alias(SHARD))


def read_folder(folder: Path) -> Any:
    """A dataframe of the rows that `write` put in a folder, or in one of its `by=value` folders."""
    files = sorted(file for file in folder.rglob("*.parquet") if file.name != EMPTY)
    if not files:
        files = [next(f / EMPTY for f in (folder, *folder.parents) if (f / EMPTY).exists())]
    return _daft().read_parquet([str(file) for file in files])


def write(frame: Any, folder: Path, *, by: str | None = None) -> None:
    """Runs a dataframe and writes its rows as a folder of Parquet files, atomically.

    With `by`, rows are partitioned by that column: `folder/shard=7`.
    """
    with write_errors(folder), replace_folder(folder) as partial:
        columns = frame.exclude(by) if by is not None else frame
        pq.write_table(columns.schema().to_pyarrow_schema().empty_table(), partial / EMPTY)
        # on a cluster each partition writes its own files: bring the rows of a shard together first
        rows = frame if by is None or _chosen == [LOCAL] else frame.repartition(None, by)
        rows.write_parquet(
            str(partial), compression="zstd", partition_cols=None if by is None else [by]
        )


def _daft() -> Any:
    # no progress bars and no telemetry of Daft
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")
    os.environ.setdefault("DAFT_ANALYTICS_ENABLED", "0")
    try:
        import daft
    except ImportError as error:
        raise IsoglotError("Joins need Daft: pip install 'isoglot[knowledge]'.") from error
    return daft
