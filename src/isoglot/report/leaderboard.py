"""The scores of all models, aggregated: one mean score for each model, column and language.

A column holds comparable scores: one metric of one version of one task, in one scenario. Scores are
aggregated in this order: the two directions of a language pair are averaged; of several layers, the
one that the model folder delivers is used (its own sentence vectors, or the last layer);
repetitions (seeds, or runs of one name) give the mean and the standard deviation. Averages are
those of `isoglot.averaging`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np

from isoglot.averaging import (
    BestLayer,
    best_layer,
    delivered_layer,
    mean_over_languages,
    primary_metric,
    scores_to_average,
    source_language,
    transfer_gap,
)
from isoglot.intervals import mean_interval, unpack_outcomes
from isoglot.tasks.language_sets import is_selected
from isoglot.types import FloatArray

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from isoglot.results import Results, Score

Repetition = tuple[int, int | None]
"""The index of the model's results file, and the seed in it."""


@dataclass(frozen=True, slots=True)
class Column:
    """What comparable scores have in common."""

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
        """The source language of a zero-shot scenario."""
        return source_language(self.scenario)


@dataclass(frozen=True, slots=True)
class MeanScore:
    """A mean over repetitions."""

    mean: float
    sd: float | None
    """Standard deviation over repetitions; None with one repetition."""
    repetitions: int
    count: int
    """Examples, or for an average languages, of each repetition."""
    low: float | None = None
    """Lower end of the 95 % interval over examples, mean over repetitions; None where unknown."""
    high: float | None = None
    """Upper end of it."""

    @staticmethod
    def of(
        values: Sequence[float], count: int, intervals: Sequence[tuple[float, float]] = ()
    ) -> MeanScore:
        """The mean of the repetitions' values, and of their intervals if all have one."""
        sd = stdev(values) if len(values) > 1 else None
        low = high = None
        if len(intervals) == len(values):
            low, high = (fmean(ends) for ends in zip(*intervals, strict=True))
        return MeanScore(fmean(values), sd, len(values), count, low, high)


@dataclass(frozen=True, slots=True)
class ModelScores:
    """One model in one column."""

    by_language: Mapping[str, MeanScore]
    """Language -> score, at the delivered layer."""
    average: MeanScore
    """Over languages; its count is the number of languages."""
    layer: int | None
    """The delivered layer; None: a task without layers, or the exported sentence vectors."""
    by_layer: Mapping[int, MeanScore]
    """Layer -> average over languages."""
    best: BestLayer | None
    """The best layer, chosen on other examples than it is scored on; None where unknown."""
    values: Mapping[Repetition, Mapping[str, float]]
    """Repetition -> language -> value, at the delivered layer."""
    outcomes: Mapping[str, tuple[str, FloatArray]]
    """Language -> hash of its data, and value of each example, mean over repetitions."""
    chances: Mapping[str, float]
    """Language -> what the most frequent answer scores."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the average over examples; None where it is unknown."""
        return mean_interval((s.mean, s.low, s.high) for s in self.by_language.values())

    def gap(self, column: Column) -> MeanScore | None:
        """The transfer gap: the source language's score minus the mean of the others.

        Its count is the number of other languages; None without a source language, or where its
        score is near chance.
        """
        chance = self.chances.get(column.source or "", 0.0)
        higher = column.higher_is_better
        found = [
            transfer_gap(values, column.scenario, higher_is_better=higher, chance=chance)
            for values in self.values.values()
        ]
        gaps = [gap for gap in found if gap is not None]
        return MeanScore.of(gaps, len(self.by_language) - 1) if gaps else None


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The scores that a report's tables and figures show."""

    models: tuple[str, ...]
    columns: tuple[Column, ...]
    scores: Mapping[tuple[str, Column], ModelScores]
    scales: Mapping[Column, float]
    """100 for shares, which are shown in per cent; 1 for other metrics."""

    def columns_by_task(self) -> dict[Column, list[Column]]:
        """For every task and scenario: the column of the primary metric -> the other columns."""
        groups: dict[tuple[str, int, str | None], dict[str, Column]] = defaultdict(dict)
        for column in self.columns:
            groups[column.task, column.version, column.scenario][column.metric] = column
        found = {}
        for (task, _, _), group in groups.items():
            primary = group[primary_metric(task, group)]
            found[primary] = [column for column in group.values() if column is not primary]
        return found

    def primary_columns(self) -> tuple[Column, ...]:
        """The column of the primary metric of every task and scenario."""
        return tuple(self.columns_by_task())

    def scores_of(self, column: Column) -> dict[str, ModelScores]:
        """Model -> its scores in a column, for the models that have any."""
        found = {model: self.scores.get((model, column)) for model in self.models}
        return {model: scores for model, scores in found.items() if scores is not None}

    def languages(self, column: Column) -> list[str]:
        """The languages of any model in a column, sorted."""
        return sorted({code for m in self.scores_of(column).values() for code in m.by_language})


def build_leaderboard(
    results: Mapping[str, Sequence[Results]], languages: Collection[str] | None = None
) -> Leaderboard:
    """Aggregate the results of models by name; of all languages, or only some."""
    columns: dict[Column, None] = {}
    scores: dict[tuple[str, Column], ModelScores] = {}
    for model, files in results.items():
        by_column: dict[Column, list[tuple[Repetition, Score]]] = defaultdict(list)
        for number, found in enumerate(files):
            for score in scores_to_average(found.scores):
                # a correlation of constants is not finite
                if math.isfinite(score.value) and is_selected(score.language, languages):
                    by_column[_column(score)].append(((number, score.seed), score))
        for column, of_column in by_column.items():
            columns[column] = None
            scores[model, column] = _model_scores(of_column, column)
    largest: dict[Column, float] = defaultdict(float)
    for (_, column), model_scores in scores.items():
        largest[column] = max(
            largest[column], *(abs(score.mean) for score in model_scores.by_language.values())
        )
    scales = {column: 100.0 if value <= 1 else 1.0 for column, value in largest.items()}
    return Leaderboard(tuple(results), tuple(columns), scores, scales)


def _column(score: Score) -> Column:
    # the two directions of a pair ("accuracy@1 en→de") share a column
    words = score.metric.split()
    metric = " ".join(word for word in words if "→" not in word)
    return Column(score.task, score.version, metric, score.scenario, score.higher_is_better)


def _model_scores(scores: Sequence[tuple[Repetition, Score]], column: Column) -> ModelScores:
    chosen = _with_mean_direction(scores, column)
    directions: dict[int | None, dict[Repetition, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for repetition, score in chosen:
        directions[score.layer][repetition][score.language].append(score.value)
    by_layer = {
        layer: {
            repetition: {language: fmean(values) for language, values in languages.items()}
            for repetition, languages in repetitions.items()
        }
        for layer, repetitions in directions.items()
    }
    averages = {layer: _average(repetitions) for layer, repetitions in by_layer.items()}
    layer = delivered_layer(by_layer)
    delivered = [score for _, score in chosen if score.layer == layer]
    return ModelScores(
        by_language=_by_language(by_layer[layer], delivered),
        average=averages[layer],
        layer=layer,
        by_layer={number: score for number, score in averages.items() if number is not None},
        best=best_layer(score for _, score in chosen),
        values=by_layer[layer],
        outcomes=_outcomes(delivered),
        chances={s.language: s.chance for s in delivered if s.chance is not None},
    )


def _with_mean_direction(
    scores: Sequence[tuple[Repetition, Score]], column: Column
) -> list[tuple[Repetition, Score]]:
    """The scores without single directions of which the mean is scored too."""

    def place(repetition: Repetition, score: Score) -> tuple[Repetition, int | None, str]:
        return repetition, score.layer, score.language

    means = {place(*pair) for pair in scores if pair[1].metric == column.metric}
    return [p for p in scores if p[1].metric == column.metric or place(*p) not in means]


def _by_language(
    values: Mapping[Repetition, Mapping[str, float]], scores: Sequence[Score]
) -> dict[str, MeanScore]:
    """Language -> mean over repetitions, with the number of examples and the interval."""
    found: dict[str, list[float]] = defaultdict(list)
    for languages in values.values():
        for language, value in languages.items():
            found[language].append(value)
    counts = {score.language: score.count for score in scores}
    intervals: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for score in scores:
        if score.low is not None and score.high is not None:
            intervals[score.language].append((score.low, score.high))
    return {code: MeanScore.of(own, counts[code], intervals[code]) for code, own in found.items()}


def _outcomes(scores: Sequence[Score]) -> dict[str, tuple[str, FloatArray]]:
    """Language -> hash of the data and values by example, if all repetitions have the same data."""
    by_language: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        by_language[score.language].append(score)
    found = {}
    for language, own in by_language.items():
        texts = [score.outcomes for score in own if score.outcomes is not None]
        hashes = {score.data for score in own}
        if len(texts) == len(own) and len(hashes) == 1 and (data := hashes.pop()) is not None:
            found[language] = data, np.mean([unpack_outcomes(text) for text in texts], axis=0)
    return found


def _average(repetitions: Mapping[Repetition, Mapping[str, float]]) -> MeanScore:
    """The mean over languages, then over repetitions."""
    languages, means = mean_over_languages(repetitions)
    return MeanScore.of(list(means.values()), len(languages))
