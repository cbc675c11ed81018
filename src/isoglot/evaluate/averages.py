"""Averages as the papers take them: over languages first, then over seeds.

Reads scores; gives for each task, metric, scenario and layer the mean over its languages for every
seed, the mean and standard deviation over seeds, and the seed whose average is best. Only languages
that all seeds have scored count (`isoglot.averaging`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import mean, stdev
from typing import TYPE_CHECKING, NamedTuple

from isoglot.averaging import ANSWERS, BOTH, over_languages, to_average, transfer_gap
from isoglot.tasks import shown_metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.results import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """One task's mean over languages, by seed and over seeds."""

    task: str
    version: int
    metric: str
    scenario: str | None
    layer: int | None
    higher_is_better: bool
    languages: tuple[str, ...]
    seeds: tuple[int | None, ...]
    by_seed: tuple[float, ...]
    """The mean over languages of each seed."""
    mean: float
    sd: float | None
    """Standard deviation over seeds (n - 1); none where there is one seed."""
    best_seed: int | None
    """The seed with the best mean over languages."""
    gap: float | None
    """The transfer gap, mean over seeds; none where no source language is scored."""


class _Key(NamedTuple):
    task: str
    version: int
    metric: str
    scenario: str | None
    layer: int | None
    higher_is_better: bool


def averages(scores: Iterable[Score]) -> list[Average]:
    """The averages of all tasks in the order in which their scores come."""
    grouped: dict[_Key, dict[int | None, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for s in to_average(scores):
        key = _Key(s.task, s.version, s.metric, s.scenario, s.layer, s.higher_is_better)
        grouped[key][s.seed][s.language] = s.value
    found = (_average(key, by_seed) for key, by_seed in grouped.items())
    return [average for average in found if average is not None]


def headline(found: Sequence[Average]) -> dict[str, Average]:
    """One average for each task: that of the metric which tables show of it.

    Of several scenarios or layers, the best one's.
    """
    chosen: dict[str, Average] = {}
    for task in dict.fromkeys(average.task for average in found):
        own = [average for average in found if average.task == task]
        metric = shown_metric(task, [average.metric for average in own])
        shown = [average for average in own if average.metric == metric]
        sign = 1 if shown[0].higher_is_better else -1
        chosen[task] = max(shown, key=lambda average: sign * average.mean)
    return chosen


def metrics_of(average: Average) -> tuple[str, ...]:
    """The metrics that an average is made of."""
    return ANSWERS if average.metric == BOTH else (average.metric,)


def _average(key: _Key, by_seed: dict[int | None, dict[str, float]]) -> Average | None:
    languages, means = over_languages(by_seed)
    if not languages:
        return None
    gaps = [
        transfer_gap(
            {code: values[code] for code in languages},
            key.scenario,
            higher_is_better=key.higher_is_better,
        )
        for values in by_seed.values()
    ]
    known = [gap for gap in gaps if gap is not None]
    sign = 1 if key.higher_is_better else -1
    return Average(
        **key._asdict(),
        languages=languages,
        seeds=tuple(means),
        by_seed=tuple(means.values()),
        mean=mean(means.values()),
        sd=stdev(means.values()) if len(means) > 1 else None,
        best_seed=max(means, key=lambda seed: sign * means[seed]),
        gap=mean(known) if known else None,
    )
