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

from isoglot.intervals import mean_interval
from isoglot.languages import is_pair
from isoglot.results import score_identity

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
    interval: tuple[float, float] | None
    """The 95 % interval of the mean over examples, mean over seeds; none where it is unknown."""
    gap: float | None
    """The transfer gap, mean over seeds; none where the source language has no score above chance.
    """


def averages(scores: Iterable[Score]) -> list[Average]:
    """The averages of all tasks, metrics, scenarios and layers, in the order of the scores."""
    groups: dict[ScoreGroup, dict[int | None, dict[str, Score]]] = {}
    for s in scores_to_average(scores):
        group = ScoreGroup(s.task, s.version, s.metric, s.scenario, s.layer, s.higher_is_better)
        groups.setdefault(group, {}).setdefault(s.seed, {})[s.language] = s
    found = (_average(group, by_seed) for group, by_seed in groups.items())
    return [average for average in found if average is not None]


def _average(group: ScoreGroup, by_seed: dict[int | None, dict[str, Score]]) -> Average | None:
    values = {
        seed: {code: score.value for code, score in own.items()} for seed, own in by_seed.items()
    }
    languages, means = mean_over_languages(values)
    if not languages:
        return None
    shared = [[own[code] for code in languages] for own in by_seed.values()]
    gaps = [gap for own in shared if (gap := _gap(own, group)) is not None]
    intervals = [mean_interval((s.value, s.low, s.high) for s in own) for own in shared]
    ends = [interval for interval in intervals if interval is not None]
    sign = 1 if group.higher_is_better else -1
    return Average(
        **asdict(group),
        languages=languages,
        seeds=tuple(means),
        by_seed=tuple(means.values()),
        mean=mean(means.values()),
        sd=stdev(means.values()) if len(means) > 1 else None,
        best_seed=max(means, key=lambda seed: sign * means[seed]),
        interval=(fmean(low for low, _ in ends), fmean(high for _, high in ends))
        if len(ends) == len(shared)
        else None,
        gap=mean(gaps) if gaps else None,
    )


def _gap(scores: Sequence[Score], group: ScoreGroup) -> float | None:
    """The transfer gap of one seed."""
    source = source_language(group.scenario)
    return transfer_gap(
        {score.language: score.value for score in scores},
        group.scenario,
        higher_is_better=group.higher_is_better,
        chance=next((s.chance for s in scores if s.language == source and s.chance), 0.0),
    )


def headline_averages(found: Sequence[Average]) -> dict[str, Average]:
    """Task -> the average of its primary metric, in its best scenario, as the model delivers it."""
    chosen: dict[str, Average] = {}
    for task in dict.fromkeys(average.task for average in found):
        own = [average for average in found if average.task == task]
        metric = primary_metric(task, [average.metric for average in own])
        layer = delivered_layer(average.layer for average in own if average.metric == metric)
        shown = [a for a in own if (a.metric, a.layer) == (metric, layer)]
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
    exact = {_without_metric(s): s for s in found if s.metric == QA_METRICS[1]}
    extended: list[Score] = []
    for score in found:
        if score.metric == QA_METRICS[0] and _without_metric(score) in exact:
            extended.append(_mean_of_both(score, exact[_without_metric(score)]))
        extended.append(score)
    single = {(score.task, score.version) for score in extended if not is_pair(score.language)}
    return [
        replace(score, metric=f"{score.metric} {_CROSS_LINGUAL}")
        if is_pair(score.language) and (score.task, score.version) in single
        else score
        for score in extended
    ]


def _mean_of_both(f1: Score, exact: Score) -> Score:
    """The mean of two scores; its interval is at most as wide as the mean of theirs."""
    low, high = (
        None if one is None or other is None else (one + other) / 2
        for one, other in ((f1.low, exact.low), (f1.high, exact.high))
    )
    value = (f1.value + exact.value) / 2
    both = replace(f1, metric=F1_AND_EXACT, value=value, low=low, high=high)
    return replace(both, halves=None, outcomes=None)


def _without_metric(score: Score) -> tuple[object, ...]:
    return score_identity(replace(score, metric=""))


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


def delivered_layer(layers: Iterable[int | None]) -> int | None:
    """The layer that a model folder gives its users: its own vectors (none), or the last layer."""
    found = set(layers)
    numbers = [layer for layer in found if layer is not None]
    return None if None in found else max(numbers, default=None)


@dataclass(frozen=True, slots=True)
class BestLayer:
    """The score of the best layer, which is chosen on other examples than it is scored on."""

    layers: tuple[int, ...]
    """The layer that is best on the even examples and that on the odd ones; one if they agree."""
    by_language: dict[str, float]
    """Language -> the mean of the odd examples' score at the one and the even ones' at the other.
    """

    @property
    def average(self) -> float:
        """Over languages."""
        return fmean(self.by_language.values())

    @property
    def name(self) -> str:
        """`layer 4`, or `layers 4, 5`."""
        numbers = ", ".join(map(str, self.layers))
        return f"layer {numbers}" if len(self.layers) == 1 else f"layers {numbers}"


def best_layer(scores: Iterable[Score]) -> BestLayer | None:
    """The best layer on average over languages, by two-fold cross-validation over examples.

    None where a score has no halves: files of earlier versions, and metrics that are not computed
    by example.
    """
    values: tuple[_ByLayer, _ByLayer] = defaultdict(dict), defaultdict(dict)
    higher_is_better = True
    for score in scores:
        if score.layer is None:
            continue
        if score.halves is None:
            return None
        higher_is_better = score.higher_is_better
        for half, value in zip(values, score.halves, strict=True):
            half[score.layer].setdefault(score.language, []).append(value)
    if not values[0]:
        return None
    means = [
        {layer: {code: fmean(v) for code, v in own.items()} for layer, own in half.items()}
        for half in values
    ]
    chosen = [
        best_layer_of(
            {layer: fmean(own.values()) for layer, own in half.items()},
            higher_is_better=higher_is_better,
        )
        for half in means
    ]
    even, odd = means
    return BestLayer(
        layers=tuple(sorted(set(chosen))),
        by_language={
            code: (odd[chosen[0]][code] + even[chosen[1]][code]) / 2
            for code in even[chosen[0]]
            if code in even[chosen[1]]
        },
    )


_ByLayer = dict[int, dict[str, list[float]]]


def best_layer_of(means: Mapping[L, float], *, higher_is_better: bool) -> L:
    """The layer with the best mean; of equal ones the lowest."""
    sign = 1 if higher_is_better else -1
    return max(means, key=lambda layer: (sign * means[layer], -(layer or 0)))


def source_language(scenario: str | None) -> str | None:
    """The source language of a zero-shot scenario (`zero-shot from en, xtreme`), or none."""
    if scenario is None or not scenario.startswith(_ZERO_SHOT):
        return None
    return scenario.removeprefix(_ZERO_SHOT).partition(",")[0]


_MIN_SKILL = 0.1
"""Share of the way from chance to a perfect score below which a model has learned nothing."""


def transfer_gap(
    values: Mapping[str, float],
    scenario: str | None,
    *,
    higher_is_better: bool = True,
    chance: float = 0.0,
) -> float | None:
    """The score of the source language minus the mean of the others (XTREME, section 4).

    Positive where the other languages are worse, also for metrics where lower is better. None
    without a source language or without others; language pairs are not among the others. None too
    where the source language's score is near chance: a model that fails everywhere has no gap.
    """
    source = source_language(scenario)
    others = [value for code, value in values.items() if code != source and not is_pair(code)]
    if source is None or source not in values or not others:
        return None
    if higher_is_better and values[source] < chance + _MIN_SKILL * (1 - chance):
        return None
    gap = values[source] - fmean(others)
    return gap if higher_is_better else -gap
