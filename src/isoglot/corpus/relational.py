"""Where joins run: Daft dataframes, on this machine by default, on a Ray cluster by a setting.

Relational work (who links to what, which title is which entity) is written once, as Daft
dataframes over Parquet files. Daft's own engine needs no server and may read more than memory
holds; a Ray cluster runs the same code. Rows come out in no fixed order: whoever reads a result
back sorts it, so that neither the engine nor the number of its parts can change what is written.

    choose_engine(None | "local" | "auto" | "ray://host:10001")
    frame = read(files)  ...  write(frame, folder)
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from isoglot.corpus.disk import PARTIAL, writing
from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SHARD = "shard"
"""The column that says which shard of a table a row is from."""

_EMPTY = "empty.parquet"
_chosen: list[str | None] = []


def choose_engine(cluster: str | None = None) -> None:
    """Decides, for the life of this process, where dataframes run.

    `cluster` is None for this process itself, `local` for a Ray started here, `auto` for the Ray
    that runs on this machine, or the address of one (`ray://host:10001`).
    """
    if _chosen:
        if _chosen[0] != cluster:
            raise IsoglotError(
                f"Joins of this process run on {_chosen[0] or 'this machine'} already and cannot "
                f"move to {cluster or 'this machine'}. Start another process."
            )
        return
    daft = _daft()
    if cluster is None:
        daft.set_runner_native()
    else:
        _connect(cluster)
        daft.set_runner_ray(noop_if_initialized=True)
    _chosen.append(cluster)


def read(files: Sequence[Path], columns: Sequence[str]) -> Any:
    """A dataframe of these columns of shards, `NAME-00007.parquet`; `shard` is their number, 7."""
    from daft import DataType, col

    assert all(re.search(r"-\d{5}\.parquet$", file.name) for file in files), "shards are numbered"
    frame = _daft().read_parquet([str(file) for file in files], file_path_column=SHARD)
    # cut by place: a regular expression for every row takes longer than a join
    number = col(SHARD).right(len("00007.parquet")).left(len("00007")).cast(DataType.int32())
    return frame.select(*columns, number.alias(SHARD))


def read_folder(folder: Path) -> Any:
    """A dataframe of all that `write` left in a folder, or in one of its `by=value` folders."""
    files = sorted(file for file in folder.rglob("*.parquet") if file.name != _EMPTY)
    if not files:
        files = [next(f / _EMPTY for f in (folder, *folder.parents) if (f / _EMPTY).exists())]
    return _daft().read_parquet([str(file) for file in files])


def write(frame: Any, folder: Path, *, by: str | None = None) -> None:
    """Runs a dataframe and writes its rows as Parquet: the folder appears whole or not at all.

    With `by`, rows are in a folder for each value of that column, `folder/shard=7`.
    """
    partial = folder.with_name(folder.name + PARTIAL)
    with writing(folder):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        # no rows leave no file, and nobody could tell what columns they would have had
        columns = frame.exclude(by) if by is not None else frame
        pq.write_table(columns.schema().to_pyarrow_schema().empty_table(), partial / _EMPTY)
    # on a cluster each part of the work writes its own files: rows of one shard meet first
    rows = frame if by is None or _chosen == [None] else frame.repartition(None, by)
    rows.write_parquet(
        str(partial), compression="zstd", partition_cols=None if by is None else [by]
    )
    with writing(folder):
        partial.replace(folder)


def _daft() -> Any:
    # Daft would draw bars of its own over ours, and tell its makers of each use
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")
    os.environ.setdefault("DAFT_ANALYTICS_ENABLED", "0")
    try:
        import daft
    except ImportError as error:
        raise IsoglotError("Joins need Daft: pip install 'isoglot[knowledge]'.") from error
    return daft


def _connect(cluster: str) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise IsoglotError("A cluster needs Ray: pip install 'isoglot[cluster]'.") from error
    address = None if cluster == "local" else cluster
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise IsoglotError(
            f"cluster: there is no Ray at {cluster!r} ({str(error).splitlines()[0]}). Start one "
            "with `ray start --head`, or leave the setting out to run on this machine."
        ) from error
