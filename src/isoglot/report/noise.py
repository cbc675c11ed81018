"""Is a model better than another beyond noise? A paired bootstrap over the examples of test sets.

In each language the same examples are drawn for both models where both have outcomes of the same
data; otherwise their two intervals count as independent. Where there are repetitions, the error of
their mean is added. A model is better if it is so in at least 97.5 % of the samples.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from isoglot.intervals import SAMPLES, resampled_means

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isoglot.report.leaderboard import MeanScore, ModelScores
    from isoglot.types import FloatArray

_SURE = 0.975
_WIDTH = 2 * 1.96
"""Standard errors that a 95 % interval is wide."""


class Comparisons:
    """Models with their means: which is better than which, beyond noise."""

    def __init__(
        self, means: Mapping[str, float], is_better: Callable[[str, str], bool], *, higher: bool
    ) -> None:
        """`is_better` tests the first of two names, which has the better mean."""
        self.means = means
        self._test, self._higher = is_better, higher
        self._known: dict[tuple[str, str], bool] = {}

    def is_better(self, first: str, second: str) -> bool:
        """Whether a model is better than another, beyond noise."""
        ahead = self.means[first] - self.means[second]
        if ahead == 0 or (ahead > 0) != self._higher:  # the better of a pair has the better mean
            return False
        if (first, second) not in self._known:
            self._known[first, second] = self._test(first, second)
        return self._known[first, second]

    def top(self) -> list[str]:
        """The model with the best mean, and all that are not worse than it beyond noise."""
        if not self.means:
            return []
        best = (max if self._higher else min)(self.means, key=lambda name: self.means[name])
        return [name for name in self.means if name == best or not self.is_better(best, name)]

    def best(self) -> str | None:
        """The model that is better than every other beyond noise; none if none is."""
        top = self.top()
        return top[0] if len(top) == 1 and len(self.means) > 1 else None

    def rank(self, name: str) -> int:
        """One more than the number of models that are better beyond noise."""
        return 1 + sum(self.is_better(other, name) for other in self.means if other != name)


def compare_models(
    models: Mapping[str, ModelScores], languages: Sequence[str], *, higher: bool
) -> Comparisons:
    """Comparisons by the mean over languages, of the models that have all of them."""
    means = {
        name: float(np.mean([scores.by_language[code].mean for code in languages]))
        for name, scores in models.items()
        if languages and all(code in scores.by_language for code in languages)
    }

    def test(first: str, second: str) -> bool:
        return is_better(models[first], models[second], languages, higher=higher)

    return Comparisons(means, test, higher=higher)


def is_better(
    first: ModelScores, second: ModelScores, languages: Sequence[str], *, higher: bool
) -> bool:
    """Whether the first model is better than the second, beyond noise, over some languages."""
    drawn = _mean_differences(first, second, languages, np.random.default_rng(0))
    return _is_sure(drawn if higher else -drawn)


def is_better_over_tasks(tasks: Sequence[tuple[ModelScores, ModelScores, Sequence[str]]]) -> bool:
    """Whether the first model's mean over tasks is higher than the second's, beyond noise.

    Each task has the scores of both models and its languages; for each of them higher is better.
    """
    rng = np.random.default_rng(0)
    drawn = [_mean_differences(first, second, codes, rng) for first, second, codes in tasks]
    return _is_sure(np.mean(drawn, axis=0))


def _is_sure(differences: FloatArray) -> bool:
    return bool((differences > 0).mean() >= _SURE)


def _mean_differences(
    first: ModelScores, second: ModelScores, languages: Sequence[str], rng: np.random.Generator
) -> FloatArray:
    """(samples,) differences of two models' means over languages, first minus second."""
    drawn: FloatArray = np.mean(
        [_differences(first, second, code, rng) for code in languages], axis=0
    )
    alone = [
        scores.by_language[languages[0]] if len(languages) == 1 else scores.average
        for scores in (first, second)
    ]
    error = math.hypot(*(_repetition_error(score) for score in alone))
    return drawn + rng.normal(0, error, SAMPLES) if error else drawn


def _differences(
    first: ModelScores, second: ModelScores, code: str, rng: np.random.Generator
) -> FloatArray:
    """(samples,) differences of two models in one language, first minus second."""
    one, other = first.by_language[code], second.by_language[code]
    mine, theirs = first.outcomes.get(code), second.outcomes.get(code)
    if mine is not None and theirs is not None and mine[0] == theirs[0]:
        return resampled_means(mine[1] - theirs[1], rng, SAMPLES)
    error = math.hypot(_example_error(one), _example_error(other))
    drawn: FloatArray = one.mean - other.mean + rng.normal(0, error, SAMPLES)
    return drawn


def _example_error(score: MeanScore) -> float:
    """The standard error over examples: from the interval, or as of a share of the examples."""
    if score.low is not None and score.high is not None:
        return (score.high - score.low) / _WIDTH
    if 0 <= score.mean <= 1 and score.count:
        return math.sqrt(score.mean * (1 - score.mean) / score.count)
    return 0.0


def _repetition_error(score: MeanScore) -> float:
    return 0.0 if score.sd is None else score.sd / math.sqrt(score.repetitions)
