"""All scores of all models, gathered: for every model, column and language one cell.

A column is what may be compared: one metric of one version of one task, in one scenario. Several
values of one cell are handled in this order: the two directions of a pair are averaged; where all
layers were scored, the layer is the one that is best on average; repetitions (seeds, or runs of one
name) give the mean and the standard deviation. Averages are those of `isoglot.averaging`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from isoglot.averaging import best_of, over_languages, source_of, to_average, transfer_gap
from isoglot.tasks import shown_metric
from isoglot.tasks.subsets import is_wanted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from isoglot.results import Results, Score

Repetition = tuple[int, int | None]
"""The how-manieth results file of the model, and the seed inside it."""


@dataclass(frozen=True, slots=True)
class Column:
    """What scores must share to be compared."""

    task: str
    version: int
    metric: str
    scenario: str | None
    higher_is_better: bool

    @property
    def label(self) -> str:
        """The task, and its scenario if it has one."""
        return self.task if self.scenario is None else f"{self.task}, {self.scenario}"

    @property
    def source(self) -> str | None:
        """The language that the scenario transfers from, if it does."""
        return source_of(self.scenario)


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean over repetitions."""

    mean: float
    sd: float | None
    """None where there was one repetition."""
    repetitions: int
    count: int
    """What each repetition's value is a mean over."""

    @staticmethod
    def of(values: Sequence[float], count: int) -> Cell:
        """The cell of some repetitions' values."""
        sd = stdev(values) if len(values) > 1 else None
        return Cell(fmean(values), sd, len(values), count)


@dataclass(frozen=True, slots=True)
class Entry:
    """One model in one column."""

    cells: Mapping[str, Cell]
    """Language -> cell."""
    average: Cell
    """Over languages; its count is the number of languages."""
    layer: int | None
    """The layer that the cells are from."""
    layers: Mapping[int, Cell]
    """Layer -> average over languages."""
    values: Mapping[Repetition, Mapping[str, float]]
    """Repetition -> language -> value, at the layer of the cells."""

    def gap(self, column: Column) -> Cell | None:
        """The score of the source language less the mean of the others; None without a source.

        Its count is the number of the others.
        """
        found = [
            transfer_gap(values, column.scenario, higher_is_better=column.higher_is_better)
            for values in self.values.values()
        ]
        gaps = [gap for gap in found if gap is not None]
        return Cell.of(gaps, len(self.cells) - 1) if gaps else None


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that the tables of a report show."""

    models: tuple[str, ...]
    columns: tuple[Column, ...]
    entries: Mapping[tuple[str, Column], Entry]
    scales: Mapping[Column, float]
    """100 for shares, which are shown in per cent; 1 for other metrics."""

    def by_task(self) -> dict[Column, list[Column]]:
        """For every task and scenario, the column that overviews show -> the others."""
        groups: dict[tuple[str, int, str | None], dict[str, Column]] = defaultdict(dict)
        for column in self.columns:
            groups[column.task, column.version, column.scenario][column.metric] = column
        found = {}
        for (task, _, _), group in groups.items():
            shown = group[shown_metric(task, group)]
            found[shown] = [column for column in group.values() if column is not shown]
        return found

    def primary(self) -> tuple[Column, ...]:
        """The metric that overviews show, of every task and scenario."""
        return tuple(self.by_task())

    def of(self, column: Column) -> dict[str, Entry]:
        """Model -> entry, for the models that have one."""
        found = {model: self.entries.get((model, column)) for model in self.models}
        return {model: entry for model, entry in found.items() if entry is not None}

    def languages(self, column: Column) -> list[str]:
        """The languages that any model was scored on, sorted."""
        return sorted({code for entry in self.of(column).values() for code in entry.cells})


def gather(
    results: Mapping[str, Sequence[Results]], languages: Collection[str] | None = None
) -> Board:
    """The board of named models, each with one or more results; `languages` none: all there are."""
    columns: dict[Column, None] = {}
    entries: dict[tuple[str, Column], Entry] = {}
    for model, files in results.items():
        scores: dict[Column, list[tuple[Repetition, Score]]] = defaultdict(list)
        for number, found in enumerate(files):
            for score in to_average(found.scores):
                if not math.isfinite(score.value) or not is_wanted(score.language, languages):
                    continue  # a correlation of constants, say, cannot be shown or averaged
                scores[_column(score)].append(((number, score.seed), score))
        for column, of_column in scores.items():
            columns[column] = None
            entries[model, column] = _entry(of_column, higher=column.higher_is_better)
    largest: dict[Column, float] = defaultdict(float)
    for (_, column), entry in entries.items():
        largest[column] = max(largest[column], *(abs(c.mean) for c in entry.cells.values()))
    scales = {column: 100.0 if most <= 1 else 1.0 for column, most in largest.items()}
    return Board(tuple(results), tuple(columns), entries, scales)


def _column(score: Score) -> Column:
    # a direction ("accuracy@1 en→de") is a part of the cell, not another metric
    words = score.metric.split()
    metric = " ".join(word for word in words if "→" not in word)
    return Column(score.task, score.version, metric, score.scenario, score.higher_is_better)


def _entry(scores: Sequence[tuple[Repetition, Score]], *, higher: bool) -> Entry:
    directions: dict[int | None, dict[Repetition, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    counts: dict[str, int] = {}
    for repetition, score in scores:
        directions[score.layer][repetition][score.language].append(score.value)
        counts[score.language] = score.count
    by_layer = {
        layer: {
            repetition: {language: fmean(values) for language, values in languages.items()}
            for repetition, languages in repetitions.items()
        }
        for layer, repetitions in directions.items()
    }
    averages = {layer: _average(repetitions) for layer, repetitions in by_layer.items()}
    means = {layer: average.mean for layer, average in averages.items()}
    best = best_of(means, higher_is_better=higher)
    cells: dict[str, list[float]] = defaultdict(list)
    for languages in by_layer[best].values():
        for language, value in languages.items():
            cells[language].append(value)
    return Entry(
        cells={language: Cell.of(values, counts[language]) for language, values in cells.items()},
        average=averages[best],
        layer=best,
        layers={layer: cell for layer, cell in averages.items() if layer is not None},
        values=by_layer[best],
    )


def _average(repetitions: Mapping[Repetition, Mapping[str, float]]) -> Cell:
    """Languages first, then repetitions."""
    languages, means = over_languages(repetitions)
    return Cell.of(list(means.values()), len(languages))
