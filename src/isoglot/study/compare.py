"""The rows of a study side by side: averages by task, and each row against the first.

Reads scores of all seeds of each row; gives a row's averages, the mean over tasks, and the paired
bootstrap of its seeds and languages against those of the first row. A task is read in one way in
all rows, at one layer and in one scenario: the one whose mean over all rows is best.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import TYPE_CHECKING

import numpy as np

from isoglot.evaluate.averages import Average, averages, headline, metrics_of
from isoglot.evaluate.bootstrap import Difference, paired_bootstrap
from isoglot.results import ResultsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.results import Score

Cell = tuple[str, str]
"""A task and a language."""
Values = dict[int, dict[Cell, float]]
"""Seed -> cell -> its value, turned so that more is better."""


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
    """Of the means; none for the first row."""


def compare(scores: Mapping[str, Sequence[Score]]) -> list[Row]:
    """Rows in the order of the scores, by name; each score has its study's seed.

    Raises:
        ResultsError: the rows have no score that all share.
    """
    ways = _common_ways(scores)
    values = _shared({name: _values(own, ways) for name, own in scores.items()})
    first = next(iter(values.values()))
    return [
        _row(name, [s for s in scores[name] if _is_of(s, ways)], own, first if number else None)
        for number, (name, own) in enumerate(values.items())
    ]


def _row(name: str, scores: Sequence[Score], values: Values, first: Values | None) -> Row:
    by_seed = [_over_tasks(cells) for cells in values.values()]
    return Row(
        name=name,
        seeds=len(values),
        tasks=headline(averages(scores)),
        mean=mean(by_seed),
        sd=stdev(by_seed) if len(by_seed) > 1 else None,
        against_first=None if first is None else _against(first, values),
    )


def _common_ways(scores: Mapping[str, Sequence[Score]]) -> dict[str, Average]:
    """Task -> the average over the runs of all rows that is best; its layer is that of all."""
    runs: dict[tuple[str, int | None], int] = {}
    pooled = [
        replace(score, seed=runs.setdefault((name, score.seed), len(runs)))
        for name, own in scores.items()
        for score in own
    ]
    every = len(runs)
    return headline([average for average in averages(pooled) if len(average.seeds) == every])


def _is_of(score: Score, ways: Mapping[str, Average]) -> bool:
    """Is a score read in the way that is common to all rows, in a language of theirs?"""
    way = ways.get(score.task)
    return way is not None and (score.version, score.scenario, score.layer, True) == (
        way.version,
        way.scenario,
        way.layer,
        score.language in way.languages,
    )


def _values(scores: Sequence[Score], ways: Mapping[str, Average]) -> Values:
    found: dict[int, dict[Cell, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score in scores:
        if score.seed is None or not _is_of(score, ways):
            continue
        if score.metric in metrics_of(ways[score.task]):
            value = score.value if score.higher_is_better else 1 - score.value
            found[score.seed][score.task, score.language].append(value)
    return {s: {cell: mean(v) for cell, v in cells.items()} for s, cells in found.items()}


def _shared(rows: Mapping[str, Values]) -> dict[str, Values]:
    """The rows' values for the seeds that all of them have."""
    seeds = set.intersection(*(set(values) for values in rows.values()))
    if not seeds:
        raise ResultsError(
            f"{', '.join(rows)} have no task, language and seed in which all of them are scored, "
            "so there is nothing to compare."
        )
    return {name: {seed: own[seed] for seed in sorted(seeds)} for name, own in rows.items()}


def _over_tasks(cells: Mapping[Cell, float]) -> float:
    by_task: dict[str, list[float]] = defaultdict(list)
    for (task, _), value in cells.items():
        by_task[task].append(value)
    return mean(mean(values) for values in by_task.values())


def _against(first: Values, second: Values) -> Difference:
    cells = list(next(iter(first.values())))
    one, other = (
        np.array([[values[seed][cell] for cell in cells] for seed in first])
        for values in (first, second)
    )
    return paired_bootstrap(one, other, [task for task, _ in cells])
