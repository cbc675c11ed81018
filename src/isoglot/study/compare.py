"""The table of a study: averages by task, and the differences between rows, task by task.

Reads the scores of all seeds of each row. A task is compared in one metric, scenario and layer in
all rows: the scenario with the best mean over all rows, at the layer that models deliver. A
difference is tested for each task by itself, since scores of unlike tasks have no common scale: a
paired bootstrap over seeds and languages, and Holm's correction of p over all tests of the table
(Holm, 1979). Fewer than `MIN_SEEDS` seeds give no interval and no p.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import mean, stdev
from typing import TYPE_CHECKING

import numpy as np

from isoglot.atomic import write_json, write_text
from isoglot.averaging import Average, averages, headline_averages, metrics_of
from isoglot.evaluation.bootstrap import MIN_PAIRS, Difference, paired_bootstrap
from isoglot.results import ResultsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from isoglot.results import Score

TaskLanguage = tuple[str, str]
Values = dict[int, dict[TaskLanguage, float]]
"""Seed -> task and language -> value, or 1 - value where lower is better."""
_SCHEMA = 3
_MIN_PRINTED_P = 0.001
MIN_SEEDS = 3
"""Two seeds have three different resamples: no estimate of how a score varies over seeds."""
ALL_PAIRS = "all"
"""The baseline that stands for a comparison of every pair of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One recipe and its averages."""

    name: str
    seeds: int
    tasks: dict[str, Average]
    mean: float
    """Over tasks, then seeds; a task where lower is better counts as 1 - value."""
    sd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The difference of two rows in one task."""

    baseline: str
    name: str
    task: str
    difference: Difference
    """Score of the row `name` less that of the row `baseline`; positive is better."""
    adjusted_p: float | None
    """p after Holm's correction over all comparisons of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTable:
    """The rows of a study and their comparisons."""

    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]


def compare(scores: Mapping[str, Sequence[Score]], baseline: str | None = None) -> StudyTable:
    """The table of scores by row name; each score has the study's seed.

    The rows are compared with the row `baseline`: none: the first; `all`: every earlier row.
    """
    shared = comparable_averages(scores.values())
    values = _shared_seeds({name: _values(own, shared) for name, own in scores.items()})
    rows = []
    for name, own in values.items():
        means = [_mean_over_tasks(of_seed) for of_seed in own.values()]
        counted = [s for s in scores[name] if s.task in shared and is_part_of(s, shared[s.task])]
        rows.append(
            Row(
                name=name,
                seeds=len(own),
                tasks=headline_averages(averages(counted)),
                mean=mean(means),
                sd=stdev(means) if len(means) > 1 else None,
            )
        )
    names = list(values)
    pairs = list(combinations(names, 2))
    if baseline != ALL_PAIRS:
        first = baseline or names[0]
        pairs = [(first, name) for name in names if name != first]
    found = [
        (one, other, task, _difference(values[one], values[other], task))
        for one, other in pairs
        for task in shared
    ]
    adjusted = holm([difference.p for *_, difference in found])
    return StudyTable(
        rows=tuple(rows),
        comparisons=tuple(
            Comparison(baseline=one, name=other, task=task, difference=difference, adjusted_p=p)
            for (one, other, task, difference), p in zip(found, adjusted, strict=True)
        ),
    )


def holm(values: Sequence[float | None]) -> list[float | None]:
    """The p values corrected by Holm's step-down method; those that are missing stay so."""
    known = sorted((p, place) for place, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[place] = highest
    return adjusted


def comparable_averages(groups: Iterable[Sequence[Score]]) -> dict[str, Average]:
    """Task -> its best average over the seeds of all groups: metric, scenario, layer, languages."""
    runs: dict[tuple[int, int | None], int] = {}
    pooled = [
        replace(score, seed=runs.setdefault((number, score.seed), len(runs)))
        for number, scores in enumerate(groups)
        for score in scores
    ]
    return headline_averages(
        [average for average in averages(pooled) if len(average.seeds) == len(runs)]
    )


def is_part_of(score: Score, average: Average) -> bool:
    """Does a score belong to an average, whatever its metric and seed?"""
    return (score.task, score.version, score.scenario, score.layer) == (
        average.task,
        average.version,
        average.scenario,
        average.layer,
    ) and score.language in average.languages


def _values(scores: Sequence[Score], shared: Mapping[str, Average]) -> Values:
    found: dict[int, dict[TaskLanguage, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score in scores:
        average = shared.get(score.task)
        if score.seed is None or average is None or not is_part_of(score, average):
            continue
        if score.metric in metrics_of(average):
            value = score.value if score.higher_is_better else 1 - score.value
            found[score.seed][score.task, score.language].append(value)
    return {s: {key: mean(v) for key, v in of_seed.items()} for s, of_seed in found.items()}


def _shared_seeds(rows: Mapping[str, Values]) -> dict[str, Values]:
    """The values of the seeds that all rows have."""
    seeds = set.intersection(*(set(values) for values in rows.values()))
    if not seeds:
        raise ResultsError(
            f"{', '.join(rows)} have no task, language and seed in which all of them are scored, "
            "so there is nothing to compare."
        )
    return {name: {seed: own[seed] for seed in sorted(seeds)} for name, own in rows.items()}


def _mean_over_tasks(values: Mapping[TaskLanguage, float]) -> float:
    by_task: dict[str, list[float]] = defaultdict(list)
    for (task, _), value in values.items():
        by_task[task].append(value)
    return mean(mean(of_task) for of_task in by_task.values())


def _difference(first: Values, second: Values, task: str) -> Difference:
    keys = [key for key in next(iter(first.values())) if key[0] == task]
    one, other = (
        np.array([[values[seed][key] for key in keys] for seed in first])
        for values in (first, second)
    )
    if len(first) < MIN_SEEDS:
        return Difference(mean=float((other - one).mean()), low=None, high=None, p=None)
    return paired_bootstrap(one, other)


def write_study(table: StudyTable, folder: Path) -> None:
    """Write study.md and study.json into a folder."""
    write_text(folder / "study.md", markdown(table))
    write_json(folder / "study.json", {"schema": _SCHEMA, **asdict(table)})


def markdown(table: StudyTable) -> str:
    """A table with a line for each recipe, and one with a line for each difference."""
    rows = table.rows
    tasks = list(dict.fromkeys(task for row in rows for task in row.tasks))
    lines = [["recipe", *tasks, "mean", "seeds"], ["---"] * (len(tasks) + 3)]
    for row in rows:
        found = [row.tasks.get(task) for task in tasks]
        cells = ("" if average is None else _task_cell(average) for average in found)
        lines.append([row.name, *cells, _percent(row.mean, row.sd), str(row.seeds)])
    text = f"{_joined(lines)}\n\n{_legend(rows)}\n"
    if not table.comparisons:
        return text
    headings = ["recipe", "compared with", "task", "difference (95 %)", "p", "p (Holm)"]
    lines = [headings, ["---"] * len(headings)]
    for one in table.comparisons:
        tested = (*_difference_cells(one.difference), _p_cell(one.adjusted_p))
        lines.append([one.name, one.baseline, one.task, *tested])
    return f"{text}\n{_joined(lines)}\n\n{_comparison_legend(table)}\n"


def _joined(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _task_cell(average: Average) -> str:
    gap = "" if average.gap is None else f" (gap {100 * average.gap:.1f})"
    return _percent(average.mean, average.sd) + gap


def _percent(value: float, sd: float | None) -> str:
    return f"{100 * value:.1f}" + ("" if sd is None else f" ± {100 * sd:.1f}")


def _difference_cells(found: Difference) -> tuple[str, str]:
    if found.low is None or found.high is None:
        return f"{100 * found.mean:+.1f}", _p_cell(found.p)
    interval = f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"
    return f"{100 * found.mean:+.1f} ({interval})", _p_cell(found.p)


def _p_cell(p: float | None) -> str:
    if p is None:
        return "–"
    return f"< {_MIN_PRINTED_P}" if p < _MIN_PRINTED_P else f"{p:.3f}"


def _legend(rows: Sequence[Row]) -> str:
    shown = {task: average for row in rows for task, average in row.tasks.items()}
    metrics = ", ".join(
        f"{task}: {average.metric}"
        + ("" if average.layer is None else f" at layer {average.layer}")
        for task, average in shown.items()
    )
    text = f"Percent: mean ± standard deviation over seeds of the mean over languages ({metrics})."
    if any(average.layer is not None for average in shown.values()):
        text += " A layer is the same in all rows: the last one."
    if any(average.gap is not None for row in rows for average in row.tasks.values()):
        text += " The gap is the source language's score minus the mean of the others."
    return text


def _comparison_legend(table: StudyTable) -> str:
    text = (
        "Differences in points, positive is better: paired bootstrap over seeds and languages, not "
        "over test examples; p (Holm) is corrected for the number of comparisons. No interval and "
        f"no p (–) with fewer than {MIN_SEEDS} seeds or {MIN_PAIRS} pairs of scores."
    )
    seeds = min(row.seeds for row in table.rows)
    if seeds < MIN_SEEDS:
        text += f" This study has {seeds} seed{'s' if seeds > 1 else ''}: use --seeds {MIN_SEEDS}."
    return text
