"""Averages as the papers take them: over languages first, then over seeds.

Reads scores; gives for each task, metric, scenario and layer the mean over its languages for every
seed, the mean and standard deviation over seeds, and the seed whose average is best. Only languages
that all seeds have scored count. They can be narrowed to a named subset.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import mean, stdev
from typing import TYPE_CHECKING, NamedTuple

from isoglot.errors import IsoglotError, nearest
from isoglot.evaluate.transfer import transfer_gap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.results import Score

SUBSETS: dict[str, str] = {
    "xnli": "ar bg de el en es fr hi ru sw th tr ur vi zh",
    "mlqa": "ar de en es hi vi zh",
    "paws-x": "de en es fr ja ko zh",
    "conll": "de en es nl",
    "amazon": "de en fr ja",
    "ppa-xnli": "ar bg de en es fr hi zh",
    "ppa-mlqa": "ar de en es hi zh",
}
"""The languages that papers average over, by name."""

_ANSWERS = ("f1", "exact")
"""Metrics of questions; a task's one number is their mean, as in XTREME."""
_BOTH = "f1/exact"


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


def averages(scores: Iterable[Score], languages: Sequence[str] | None = None) -> list[Average]:
    """The averages of all tasks in the order in which their scores come; languages none: all."""
    grouped: dict[_Key, dict[int | None, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for s in scores:
        if languages is None or s.language in languages:
            key = _Key(s.task, s.version, s.metric, s.scenario, s.layer, s.higher_is_better)
            grouped[key][s.seed][s.language] = s.value
    found = (_average(key, by_seed) for key, by_seed in grouped.items())
    return [average for average in found if average is not None]


def headline(found: Sequence[Average]) -> dict[str, Average]:
    """One average for each task: its first metric's; F1 and exact match are averaged.

    Of several scenarios or layers, the best one's.
    """
    chosen: dict[str, Average] = {}
    for task in dict.fromkeys(average.task for average in found):
        own = [average for average in found if average.task == task]
        first = [average for average in own if average.metric == own[0].metric]
        sign = 1 if first[0].higher_is_better else -1
        best = max(first, key=lambda average: sign * average.mean)
        chosen[task] = _joined(best, own)
    return chosen


def metrics_of(average: Average) -> tuple[str, ...]:
    """The metrics that an average is made of."""
    return _ANSWERS if average.metric == _BOTH else (average.metric,)


def subset(name: str) -> tuple[str, ...]:
    """The languages of a named subset."""
    if name in SUBSETS:
        return tuple(SUBSETS[name].split())
    raise IsoglotError(f"there is no subset of languages {name!r}: {nearest(name, SUBSETS)}")


def _average(key: _Key, by_seed: dict[int | None, dict[str, float]]) -> Average | None:
    first = next(iter(by_seed.values()))
    languages = [code for code in first if all(code in values for values in by_seed.values())]
    if not languages:
        return None
    shared = {s: {code: v[code] for code in languages} for s, v in by_seed.items()}
    means = {seed: mean(values.values()) for seed, values in shared.items()}
    sign = 1 if key.higher_is_better else -1
    gaps = [transfer_gap(values, key.scenario) for values in shared.values()]
    known = [gap for gap in gaps if gap is not None]
    return Average(
        **key._asdict(),
        languages=tuple(languages),
        seeds=tuple(means),
        by_seed=tuple(means.values()),
        mean=mean(means.values()),
        sd=stdev(means.values()) if len(means) > 1 else None,
        best_seed=max(means, key=lambda seed: sign * means[seed]),
        gap=mean(known) if known else None,
    )


def _joined(best: Average, own: Sequence[Average]) -> Average:
    """The average itself, or the mean of F1 and exact match."""
    parts = [
        average
        for average in own
        if (average.scenario, average.layer) == (best.scenario, best.layer)
        and average.metric in _ANSWERS
    ]
    if {part.metric for part in parts} != set(_ANSWERS):
        return best
    by_seed = tuple(mean(values) for values in zip(*(p.by_seed for p in parts), strict=True))
    gaps = [part.gap for part in parts if part.gap is not None]
    return Average(
        task=best.task,
        version=best.version,
        metric=_BOTH,
        scenario=best.scenario,
        layer=best.layer,
        higher_is_better=True,
        languages=best.languages,
        seeds=best.seeds,
        by_seed=by_seed,
        mean=mean(by_seed),
        sd=stdev(by_seed) if len(by_seed) > 1 else None,
        best_seed=best.seeds[by_seed.index(max(by_seed))],
        gap=mean(gaps) if gaps else None,
    )
