"""The last stage of `prepare`: the lengths of all rows, so that planning opens no shards."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from isoglot.corpus.storage.row_index import (
    RowIndexTask,
    file_of_rows,
    key_of_rows,
    write_row_index,
)
from isoglot.corpus.storage.shards import columns_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isoglot.corpus.engine.runner import StageRunner
    from isoglot.corpus.storage.manifest import Manifest
    from isoglot.corpus.storage.shards import FileEntry

_SMALL_ROWS = 1 << 22
"""Rows that are indexed in less time than starting workers takes."""


def index_rows(
    output: Path, runner: StageRunner, manifest: Manifest, moves: Mapping[Path, Path]
) -> tuple[FileEntry, ...]:
    """The lengths of the rows of every table, in a file for each; `moves` has the shards' paths."""
    now = {target: path for path, target in moves.items()}
    tasks, sizes = [], []
    for source, entry in manifest.sources.items():
        for language, splits in entry.languages.items():
            for split, found in splits.items():
                shards = tuple((now[output / one.file], one.rows) for one in found.shards)
                tasks.append(
                    RowIndexTask(
                        corpus=output,
                        file=file_of_rows(source, language, split),
                        key=key_of_rows(manifest.fingerprint, source, language, split),
                        columns=columns_of(entry.kind),
                        shards=shards,
                    )
                )
                sizes.append(found.rows)
    entries = runner.run(
        "index",
        write_row_index,
        tasks,
        name=attrgetter("file"),
        sizes=sizes,
        small=sum(sizes) < _SMALL_ROWS,
    )
    return tuple(entries)
