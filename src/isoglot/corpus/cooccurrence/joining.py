"""Runs joined into one table: the same rows of all runs added, a block of rows at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cooccurrence import kernels
from isoglot.corpus.cooccurrence.runs import Run, blocks
from isoglot.corpus.cooccurrence.table import COUNTS, KEYS
from isoglot.corpus.disk import writing

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.types import FloatArray, LongArray


def join_runs(
    runs: list[tuple[Path, str]],
    constants: dict[str, float],
    folder: Path,
    *,
    size: int,
    floor: float,
    block: int,
    workers: int,
) -> int:
    """Writes the keys and counts of all pairs, ascending; gives their number.

    Args:
        runs: folders of runs and their languages; those of a language follow each other.
        constants: what the sums of a language are multiplied with.
        folder: where the table is written.
        size: of the vocabulary.
        floor: what a pair must count to be kept.
        block: the most pairs of all runs that are joined at a time, unless one row has more.
        workers: blocks that are joined side by side.
    """
    opened = [Run.open(run) for run, _ in runs]
    numbers = {language: number for number, language in enumerate(constants)}
    languages = np.array([numbers[language] for _, language in runs], np.int64)
    factors = np.array(list(constants.values()), np.float64)
    # where a row lies in each run takes room as its pairs do
    total = len(opened) * np.arange(size + 1)
    for run in opened:
        total += run.starts
    ranges = blocks(total, block)

    def join(rows: tuple[int, int]) -> tuple[LongArray, kernels.Counts]:
        return _join_rows(opened, *rows, languages, factors, floor=floor, size=size)

    written = 0
    with (
        writing(folder),
        (folder / KEYS).open("wb") as keys_file,
        (folder / COUNTS).open("wb") as counts_file,
        ThreadPoolExecutor(workers) as pool,
    ):
        # as many at a time as there are workers: what waits to be written is memory too
        for first in range(0, len(ranges), workers):
            for keys, counts in pool.map(join, ranges[first : first + workers]):
                keys.tofile(keys_file)
                counts.tofile(counts_file)
                written += len(keys)
    return written


def _join_rows(
    runs: list[Run],
    first: int,
    last: int,
    languages: LongArray,
    factors: FloatArray,
    *,
    floor: float,
    size: int,
) -> tuple[LongArray, kernels.Counts]:
    """The keys and counts of the rows [first, last) of all runs."""
    bounds = np.stack([run.starts[first : last + 1] - run.starts[first] for run in runs])
    bounds += np.cumsum(np.append(0, bounds[:-1, -1]))[:, None]
    spans = [slice(int(run.starts[first]), int(run.starts[last])) for run in runs]
    others = np.concatenate([run.others[span] for run, span in zip(runs, spans, strict=True)])
    weights = np.concatenate([run.weights[span] for run, span in zip(runs, spans, strict=True)])
    keys, counts = np.empty(len(others), np.int64), np.empty(len(others), np.float32)
    number = kernels.join(
        others, weights, bounds, first, languages, factors, floor, size, keys, counts
    )
    return keys[:number], counts[:number]
