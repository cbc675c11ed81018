"""Runs joined into one table: the same rows of all runs added, a range of rows at a time.

A range is joined by whichever process, into a part of the table; the parts, one after the other,
are the table.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cooccurrence import kernels
from isoglot.corpus.cooccurrence.runs import Run, blocks
from isoglot.corpus.cooccurrence.settings import PairConfig
from isoglot.corpus.cooccurrence.table import KEYS, LOGS
from isoglot.corpus.disk import PARTIAL, writing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.types import LongArray

_COPIED = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTask:
    """A range of rows to be joined, by whichever process."""

    runs: tuple[tuple[Path, str], ...]
    """Folders of runs and their languages; those of a language follow each other."""
    factors: dict[str, float]
    """What the sums of a language are multiplied with."""
    first: int
    last: int
    """The rows [first, last)."""
    part: Path
    """The folder where this range of the table is kept."""
    config: PairConfig
    size: int
    """Of the vocabulary."""


def ranges(runs: Sequence[Path], size: int, block: int) -> list[tuple[int, int]]:
    """Ranges of rows with at most so many pairs in all runs together, unless one row has more."""
    # where a row lies in each run takes room as its pairs do
    total = len(runs) * np.arange(size + 1)
    for run in runs:
        total += Run.open(run).starts
    return blocks(total, block)


def join_range(task: JoinTask) -> int:
    """Joins a range of rows into a part of the table, unless it is there; gives its pairs."""
    if not task.part.exists():
        keys, logs = _joined(task)
        partial = task.part.with_name(task.part.name + PARTIAL)
        with writing(task.part):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            keys.tofile(partial / KEYS)
            logs.astype(task.config.kept, copy=False).tofile(partial / LOGS)
            partial.rename(task.part)
    return (task.part / KEYS).stat().st_size // 8


def put_together(parts: Sequence[Path], folder: Path, kept: str, *, workers: int) -> None:
    """Writes the table of all parts, in their order, and takes each away once it is copied."""
    whole = {KEYS: folder / KEYS, LOGS: folder / f"{LOGS}.{kept}"}
    width = {KEYS: 8, LOGS: np.dtype(kept).itemsize}
    numbers = [(part / KEYS).stat().st_size // 8 for part in parts]

    def put(part: Path, place: int) -> None:
        for name, file in whole.items():
            with (part / name).open("rb") as piece, file.open("r+b") as table:
                table.seek(place * width[name])
                shutil.copyfileobj(piece, table, _COPIED)
        # joined again if this is stopped here; until then its memory serves the next one
        shutil.rmtree(part)

    with writing(folder), ThreadPoolExecutor(workers) as pool:
        for name, file in whole.items():
            file.touch()
            os.truncate(file, sum(numbers) * width[name])
        list(pool.map(put, parts, accumulate(numbers[:-1], initial=0)))


def _joined(task: JoinTask) -> tuple[LongArray, kernels.Logs]:
    """The keys of a range of rows, and the logs of their counts."""
    first, last = task.first, task.last
    runs = [Run.open(run) for run, _ in task.runs]
    numbers = {language: number for number, language in enumerate(task.factors)}
    languages = np.array([numbers[language] for _, language in task.runs], np.int64)
    bounds = np.stack([run.starts[first : last + 1] - run.starts[first] for run in runs])
    bounds += np.cumsum(np.append(0, bounds[:-1, -1]))[:, None]
    kind = np.int64 if any(run.wide for run in runs) else np.uint32
    others, weights = np.empty(bounds[-1, -1], np.int32), np.empty(bounds[-1, -1], kind)
    for run, (begin, end) in zip(runs, bounds[:, [0, -1]].tolist(), strict=True):
        run.read(first, last, others[begin:end], weights[begin:end])
    keys, logs = np.empty(len(others), np.int64), np.empty(len(others), np.float32)
    number = kernels.join(
        others,
        weights,
        bounds,
        first,
        languages,
        np.array(list(task.factors.values()), np.float64),
        task.config.floor,
        task.size,
        keys,
        logs,
    )
    return keys[:number], logs[:number]
