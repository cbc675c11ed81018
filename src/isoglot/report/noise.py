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
    from collections.abc import Mapping, Sequence

    from isoglot.report.leaderboard import MeanScore, ModelScores
    from isoglot.types import FloatArray

_SURE = 0.975
_WIDTH = 2 * 1.96
"""Standard errors that a 95 % interval is wide."""


def beyond_noise(
    models: Mapping[str, ModelScores], languages: Sequence[str], *, higher: bool
) -> str | None:
    """The model that is better than every other on average over languages; none if none is."""
    means = {
        name: float(np.mean([scores.by_language[code].mean for code in languages]))
        for name, scores in models.items()
        if languages and all(code in scores.by_language for code in languages)
    }
    if len(means) < 2:
        return None
    best = (max if higher else min)(means, key=lambda name: means[name])
    others = (models[name] for name in means if name != best)
    if all(is_better(models[best], other, languages, higher=higher) for other in others):
        return best
    return None


def is_better(
    first: ModelScores, second: ModelScores, languages: Sequence[str], *, higher: bool
) -> bool:
    """Whether the first model is better than the second, beyond noise, over some languages."""
    rng = np.random.default_rng(0)
    drawn = np.mean([_differences(first, second, code, rng) for code in languages], axis=0)
    scores = (first, second)
    alone = [
        scores_of.by_language[languages[0]] if len(languages) == 1 else scores_of.average
        for scores_of in scores
    ]
    error = math.hypot(*(_repetition_error(score) for score in alone))
    drawn = drawn + rng.normal(0, error, SAMPLES) if error else drawn
    better = drawn > 0 if higher else drawn < 0
    return bool(better.mean() >= _SURE)


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
