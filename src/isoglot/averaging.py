"""Averages of scores, as in XTREME: over languages first, then over seeds.

Reads `Score`s; used by results files, tables, studies and reports. A mean over languages counts
only the languages that all seeds have. Questions and contexts in two different languages (MLQA's
G-XLT) are averaged separately, and `f1/exact` is the mean of F1 and exact match.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, mean, stdev
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from isoglot.results import Score

QA_METRICS = ("f1", "exact")
"""Metrics of question answering; XTREME's one number of a task is their mean."""
F1_AND_EXACT = "f1/exact"
"""Name of the mean of `QA_METRICS`."""
_CROSS_LINGUAL = "G-XLT"
"""Suffix of the metric of language pairs, for tasks that have single languages too."""
_ZERO_SHOT = "zero-shot from "
R = TypeVar("R", bound=Hashable)
"""Identifies a repetition: a seed, or a file and a seed."""
L = TypeVar("L", int, "int | None")


@dataclass(frozen=True, slots=True)
class ScoreGroup:
    """What the scores of one average have in common."""

    task: str
    version: int
    metric: str
    scenario: str | None
    layer: int | None
    higher_is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Average(ScoreGroup):
    """One task's mean over languages, by seed and over seeds."""

    languages: tuple[str, ...]
    """The languages that all seeds have."""
    seeds: tuple[int | None, ...]
    by_seed: tuple[float, ...]
    """The mean over languages of each seed."""
    mean: float
    sd: float | None
    """Standard deviation over seeds (n - 1); none for a single seed."""
    best_seed: int | None
    """The seed with the best mean over languages."""
    gap: float | None
    """The transfer gap, mean over seeds; none where the source language has no score."""


def averages(scores: Iterable[Score]) -> list[Average]:
    """The averages of all tasks, metrics, scenarios and layers, in the order of the scores."""
    groups: dict[ScoreGroup, dict[int | None, dict[str, float]]] = {}
    for s in scores_to_average(scores):
        group = ScoreGroup(s.task, s.version, s.metric, s.scenario, s.layer, s.higher_is_better)
        groups.setdefault(group, {}).setdefault(s.seed, {})[s.language] = s.value
    found = (_average(group, by_seed) for group, by_seed in groups.items())
    return [average for average in found if average is not None]


def _average(group: ScoreGroup, by_seed: dict[int | None, dict[str, float]]) -> Average | None:
    languages, means = mean_over_languages(by_seed)
    if not languages:
        return None
    higher = group.higher_is_better
    shared = [{code: values[code] for code in languages} for values in by_seed.values()]
    gaps = [transfer_gap(values, group.scenario, higher_is_better=higher) for values in shared]
    known = [gap for gap in gaps if gap is not None]
    sign = 1 if higher else -1
    return Average(
        **asdict(group),
        languages=languages,
        seeds=tuple(means),
        by_seed=tuple(means.values()),
        mean=mean(means.values()),
        sd=stdev(means.values()) if len(means) > 1 else None,
        best_seed=max(means, key=lambda seed: sign * means[seed]),
        gap=mean(known) if known else None,
    )


def headline_averages(found: Sequence[Average]) -> dict[str, Average]:
    """Task -> the average of its primary metric, in its best scenario and layer."""
    chosen: dict[str, Average] = {}
    for task in dict.fromkeys(average.task for average in found):
        own = [average for average in found if average.task == task]
        metric = primary_metric(task, [average.metric for average in own])
        shown = [average for average in own if average.metric == metric]
        sign = 1 if shown[0].higher_is_better else -1
        chosen[task] = max(shown, key=lambda average: sign * average.mean)
    return chosen


def primary_metric(task: str, scored: Collection[str]) -> str:
    """The metric that tables show for a task: `f1/exact`, or the task's first metric.

    `scored` are the metrics that have scores, at least one; the first of them is the answer for an
    unknown task, and for a task whose first metric has no score.
    """
    from isoglot.tasks import TASKS, find_task

    known = [find_task(task).metrics[0].name] if task in TASKS else []
    return next((m for m in (F1_AND_EXACT, *known) if m in scored), next(iter(scored)))


def metrics_of(average: Average) -> tuple[str, ...]:
    """The metrics of the scores that an average is computed from."""
    return QA_METRICS if average.metric == F1_AND_EXACT else (average.metric,)


def scores_to_average(scores: Iterable[Score]) -> list[Score]:
    """The scores, with `f1/exact` added before each F1, and language pairs under a metric `G-XLT`.

    A task whose languages are all pairs (Tatoeba's en-de) keeps its metrics.
    """
    found = list(scores)
    exact = {_without_metric(s): s.value for s in found if s.metric == QA_METRICS[1]}
    extended: list[Score] = []
    for score in found:
        if score.metric == QA_METRICS[0] and _without_metric(score) in exact:
            value = (score.value + exact[_without_metric(score)]) / 2
            extended.append(replace(score, metric=F1_AND_EXACT, value=value))
        extended.append(score)
    single = {(score.task, score.version) for score in extended if not is_pair(score.language)}
    return [
        replace(score, metric=f"{score.metric} {_CROSS_LINGUAL}")
        if is_pair(score.language) and (score.task, score.version) in single
        else score
        for score in extended
    ]


def _without_metric(score: Score) -> Score:
    return replace(score, metric="", value=0.0)


def mean_over_languages(
    repetitions: Mapping[R, Mapping[str, float]],
) -> tuple[tuple[str, ...], dict[R, float]]:
    """The languages that all repetitions share, and the mean of each repetition over them.

    Repetitions without a shared language are averaged over all languages that each has.
    """
    first = next(iter(repetitions.values()))
    shared = tuple(code for code in first if all(code in v for v in repetitions.values()))
    means = {
        repetition: fmean(values[code] for code in shared or values)
        for repetition, values in repetitions.items()
    }
    return shared, means


def best_layer(scores: Iterable[Score]) -> tuple[int, dict[str, float]]:
    """The layer with the best average over languages, and the mean of each language at it."""
    by_layer: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    higher_is_better = True
    for score in scores:
        assert score.layer is not None
        higher_is_better = score.higher_is_better
        by_layer[score.layer][score.language].append(score.value)
    means = {
        layer: {language: fmean(values) for language, values in languages.items()}
        for layer, languages in by_layer.items()
    }
    layer_means = {layer: fmean(of_layer.values()) for layer, of_layer in means.items()}
    best = best_layer_of(layer_means, higher_is_better=higher_is_better)
    return best, means[best]


def best_layer_of(means: Mapping[L, float], *, higher_is_better: bool) -> L:
    """The layer with the best mean; of equal ones the lowest."""
    sign = 1 if higher_is_better else -1
    return max(means, key=lambda layer: (sign * means[layer], -(layer or 0)))


def source_language(scenario: str | None) -> str | None:
    """The source language of a zero-shot scenario (`zero-shot from en, xtreme`), or none."""
    if scenario is None or not scenario.startswith(_ZERO_SHOT):
        return None
    return scenario.removeprefix(_ZERO_SHOT).partition(",")[0]


def transfer_gap(
    values: Mapping[str, float], scenario: str | None, *, higher_is_better: bool = True
) -> float | None:
    """The score of the source language minus the mean of the others (XTREME, section 4).

    Positive where the other languages are worse, also for metrics where lower is better. None
    without a source language or without others; language pairs are not among the others.
    """
    source = source_language(scenario)
    others = [value for code, value in values.items() if code != source and not is_pair(code)]
    if source is None or source not in values or not others:
        return None
    gap = values[source] - fmean(others)
    return gap if higher_is_better else -gap


def is_pair(language: str) -> bool:
    """Whether a language is a pair (`en-de`): of question and context, or of two sides."""
    return "-" in language
