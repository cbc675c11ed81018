"""The table of a study: averages by task, and the difference of each row from the first.

Reads the scores of all seeds of each row. A task is compared in one metric, scenario and layer in
all rows: those with the best mean over all rows. Differences come from a paired bootstrap over
seeds and, within tasks, languages.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from statistics import mean, stdev
from typing import TYPE_CHECKING

import numpy as np

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
_SCHEMA = 2
_MIN_PRINTED_P = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One recipe: its averages, and its difference from the first row."""

    name: str
    seeds: int
    tasks: dict[str, Average]
    mean: float
    """Over tasks, then seeds; a task where lower is better counts as 1 - value."""
    sd: float | None
    difference: Difference | None
    """Mean of this row less the mean of the first; None for the first row."""


def compare(scores: Mapping[str, Sequence[Score]]) -> list[Row]:
    """The rows of a table from scores by row name; each score has the study's seed."""
    shared = comparable_averages(scores.values())
    values = _shared_seeds({name: _values(own, shared) for name, own in scores.items()})
    first = next(iter(values.values()))
    rows = []
    for number, (name, own) in enumerate(values.items()):
        means = [_mean_over_tasks(of_seed) for of_seed in own.values()]
        counted = [s for s in scores[name] if s.task in shared and is_part_of(s, shared[s.task])]
        rows.append(
            Row(
                name=name,
                seeds=len(own),
                tasks=headline_averages(averages(counted)),
                mean=mean(means),
                sd=stdev(means) if len(means) > 1 else None,
                difference=_difference(first, own) if number else None,
            )
        )
    return rows


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


def _difference(first: Values, second: Values) -> Difference:
    keys = list(next(iter(first.values())))
    one, other = (
        np.array([[values[seed][key] for key in keys] for seed in first])
        for values in (first, second)
    )
    return paired_bootstrap(one, other, [task for task, _ in keys])


def write_study(rows: Sequence[Row], folder: Path) -> None:
    """Write study.md and study.json into a folder."""
    (folder / "study.md").write_text(markdown(rows), encoding="utf-8")
    content = {"schema": _SCHEMA, "rows": [asdict(row) for row in rows]}
    (folder / "study.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8"
    )


def markdown(rows: Sequence[Row]) -> str:
    """One line for each recipe: its tasks, the mean over tasks, the difference from the first."""
    tasks = list(dict.fromkeys(task for row in rows for task in row.tasks))
    headings = ["recipe", *tasks, "mean", "difference from the first (95 %)", "p", "seeds"]
    lines = [headings, ["---"] * len(headings)]
    for row in rows:
        found = [row.tasks.get(task) for task in tasks]
        lines.append(
            [
                row.name,
                *("" if average is None else _task_cell(average) for average in found),
                _percent(row.mean, row.sd),
                *_difference_cells(row.difference),
                str(row.seeds),
            ]
        )
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n{_legend(rows)}\n"


def _task_cell(average: Average) -> str:
    gap = "" if average.gap is None else f" (gap {100 * average.gap:.1f})"
    return _percent(average.mean, average.sd) + gap


def _percent(value: float, sd: float | None) -> str:
    return f"{100 * value:.1f}" + ("" if sd is None else f" ± {100 * sd:.1f}")


def _difference_cells(found: Difference | None) -> tuple[str, str]:
    if found is None:
        return "", ""
    if found.low is None or found.high is None or found.p is None:
        return f"{100 * found.mean:+.1f}", "–"
    interval = f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"
    p = f"< {_MIN_PRINTED_P}" if found.p < _MIN_PRINTED_P else f"{found.p:.3f}"
    return f"{100 * found.mean:+.1f} ({interval})", p


def _legend(rows: Sequence[Row]) -> str:
    shown = {task: average for row in rows for task, average in row.tasks.items()}
    metrics = ", ".join(
        f"{task}: {average.metric}"
        + ("" if average.layer is None else f" at layer {average.layer}")
        for task, average in shown.items()
    )
    return (
        f"Percent: mean ± standard deviation over seeds of the mean over languages ({metrics}). A "
        "layer is the same in all rows: the one with the best mean over them. The gap is the "
        "source language's score minus the mean of the others. Differences of the means: paired "
        "bootstrap over seeds and, within tasks, languages, not over test examples; no interval "
        f"and no p (–) with fewer than {MIN_PAIRS} pairs of scores."
    )
