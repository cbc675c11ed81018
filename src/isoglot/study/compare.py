"""The rows of a study side by side: averages by task, and each row against the first.

Reads scores of all seeds of each row; gives a row's averages, the mean over tasks, and the paired
bootstrap of its cells (task, language) and seeds against those of the first row.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import mean, stdev
from typing import TYPE_CHECKING

import numpy as np

from isoglot.evaluate.averages import Average, averages, headline, metrics_of
from isoglot.evaluate.bootstrap import Difference, paired_bootstrap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.results import Score

Cell = tuple[str, str]
"""A task and a language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One recipe: its averages, and how far it is above the first row."""

    name: str
    seeds: int
    tasks: dict[str, Average]
    mean: float
    """Over tasks, then seeds; a task where less is better counts from one downwards."""
    sd: float | None
    against_first: Difference | None
    """None for the first row, and where the two share no cell or seed."""


def compare(scores: Mapping[str, Sequence[Score]]) -> list[Row]:
    """Rows in the order of the scores, by name; each score has its study's seed."""
    rows: list[Row] = []
    first: dict[int, dict[Cell, float]] = {}
    for name, own in scores.items():
        tasks = headline(averages(own))
        values = _cells(own, tasks)
        by_seed = [_over_tasks(cells) for cells in values.values()]
        rows.append(
            Row(
                name=name,
                seeds=len(values),
                tasks=tasks,
                mean=mean(by_seed),
                sd=stdev(by_seed) if len(by_seed) > 1 else None,
                against_first=_against(first, values) if rows else None,
            )
        )
        first = first or values
    return rows


def _cells(scores: Sequence[Score], tasks: Mapping[str, Average]) -> dict[int, dict[Cell, float]]:
    """Seed -> cell -> its value by the task's one number, turned so that more is better."""
    found: dict[int, dict[Cell, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score in scores:
        average = tasks.get(score.task)
        if average is None or score.seed is None:
            continue
        same = (score.scenario, score.layer) == (average.scenario, average.layer)
        if same and score.metric in metrics_of(average) and score.language in average.languages:
            value = score.value if score.higher_is_better else 1 - score.value
            found[score.seed][score.task, score.language].append(value)
    return {s: {cell: mean(v) for cell, v in cells.items()} for s, cells in found.items()}


def _over_tasks(cells: Mapping[Cell, float]) -> float:
    by_task: dict[str, list[float]] = defaultdict(list)
    for (task, _), value in cells.items():
        by_task[task].append(value)
    return mean(mean(values) for values in by_task.values())


def _against(
    first: Mapping[int, Mapping[Cell, float]], second: Mapping[int, Mapping[Cell, float]]
) -> Difference | None:
    seeds = sorted(first.keys() & second.keys())
    tables = [table[seed] for table in (first, second) for seed in seeds]
    if not tables:
        return None
    shared = sorted(set.intersection(*(set(cells) for cells in tables)))
    if not shared:
        return None
    one, other = (
        np.array([[table[seed][cell] for cell in shared] for seed in seeds])
        for table in (first, second)
    )
    return paired_bootstrap(one, other)
