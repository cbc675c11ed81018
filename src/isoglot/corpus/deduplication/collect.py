"""After the searches: the duplicate rows of every part, gathered from the buckets by tasks."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.atomic import replace_file, write_errors
from isoglot.corpus.cleaning.clean_text import DuplicateRows, position_of, rows_of
from isoglot.corpus.deduplication.duplicates import (
    DuplicateKind,
    HashedPart,
    positions_file,
    read_parts,
)
from isoglot.corpus.storage.shards import SPLITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.types import LongArray

_TASK_ROWS = 4_000_000
"""Rows of the parts of one task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectTask:
    """Parts whose duplicate rows are gathered."""

    parts: Path
    """The file of all parts (`duplicates.write_parts`)."""
    first: int
    last: int
    """The parts [first, last)."""
    folder: Path
    """What the searches found."""
    kinds: tuple[DuplicateKind, ...]
    buckets: int


def collect_tasks(
    file: Path, parts: Sequence[HashedPart], kinds: Sequence[DuplicateKind], buckets: int
) -> list[CollectTask]:
    """Tasks for all parts, some consecutive ones each; the searches wrote beside the file."""
    tasks, first, rows = list[CollectTask](), 0, 0
    for number, part in enumerate(parts, start=1):
        rows += sum(part.rows.values())
        if rows >= _TASK_ROWS or number == len(parts):
            tasks.append(
                CollectTask(
                    parts=file,
                    first=first,
                    last=number,
                    folder=file.parent,
                    kinds=tuple(kinds),
                    buckets=buckets,
                )
            )
            first, rows = number, 0
    return tasks


def collect_duplicates(task: CollectTask) -> list[DuplicateRows | None]:
    """The duplicate rows of each part; an equal line does not count as a similar one."""
    parts = read_parts(task.parts)[task.first : task.last]
    nothing = [np.empty(0, np.int64)] * len(parts)
    by_kind = {}
    for kind in task.kinds:
        paths = [positions_file(task.folder, kind, bucket) for bucket in range(task.buckets)]
        by_kind[kind] = by_part(paths, parts)
    exact = by_kind.get("duplicate", nothing)
    near = by_kind.get("near-duplicate", nothing)
    collected: list[DuplicateRows | None] = []
    for part, equal, similar in zip(parts, exact, near, strict=True):
        found = {"duplicate": equal, "near-duplicate": np.setdiff1d(similar, equal)}
        found = {reason: positions for reason, positions in found.items() if len(positions)}
        collected.append(_write(Path(part.folder) / "duplicates.npz", found) if found else None)
    return collected


def _write(path: Path, found: dict[str, LongArray]) -> DuplicateRows:
    with write_errors(path), replace_file(path) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **found)
    return DuplicateRows(
        path=path,
        sha256=sha256(b"".join(rows.tobytes() for rows in found.values())).hexdigest(),
        rows={
            split: {reason: len(rows_of(rows, split)) for reason, rows in found.items()}
            for split in SPLITS
        },
    )


def by_part(paths: Sequence[Path], parts: Sequence[HashedPart]) -> list[LongArray]:
    """For each part, the positions in it that any search found, sorted."""
    starts = np.array([[part.position(split) for split in SPLITS] for part in parts])
    ends = starts + [[part.rows[split] for split in SPLITS] for part in parts]
    local = [position_of(split, 0) for split in SPLITS]
    gathered: list[list[LongArray]] = [[np.empty(0, np.int64)] for _ in parts]
    for path in paths:
        # one file at a time: there may be more buckets than a process may have files open
        positions = np.load(path, mmap_mode="r")
        lower, upper = np.searchsorted(positions, starts), np.searchsorted(positions, ends)
        for part, split in np.argwhere(upper > lower).tolist():
            found = positions[lower[part, split] : upper[part, split]]
            gathered[part].append(found - starts[part, split] + local[split])
    return [np.unique(np.concatenate(rows)) for rows in gathered]
