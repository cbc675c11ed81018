"""Is one model better than another? A paired bootstrap over seeds and languages.

Reads two tables of values with a row for each seed and a column for each language of a task; gives
the mean difference, its 95 % interval and a p-value. Seeds, and the languages within each task, are
drawn with replacement, the same for both models; values are averaged over a task's languages first
and then over tasks. The interval covers other seeds and other languages, not other test sentences,
which are the same in every sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.types import FloatArray

SAMPLES = 10_000
MIN_PAIRS = 6
"""Fewer pairs of values give no interval: five of one sign have a probability of 1 in 16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference of two models, second minus first."""

    mean: float
    low: float | None
    """2.5 % quantile of the samples; none for fewer than `MIN_PAIRS` pairs."""
    high: float | None
    """97.5 % quantile of the samples; none likewise."""
    p: float | None
    """Two-sided: twice the share of samples on the other side of 0, at most 1; none likewise."""


def paired_bootstrap(
    first: FloatArray,
    second: FloatArray,
    tasks: Sequence[str] | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Difference:
    """The difference of two tables of values (seeds, columns), second minus first.

    `tasks` has the task of each column; none: all are of one task.
    """
    assert first.shape == second.shape, "a pair for every value"
    difference = second - first
    num_seeds, num_columns = difference.shape
    named = (
        np.zeros(num_columns, int) if tasks is None else np.unique(tasks, return_inverse=True)[1]
    )
    share = 1 / np.bincount(named)[named] / len(np.unique(named))
    mean = float((difference.mean(0) * share).sum())
    if difference.size < MIN_PAIRS:
        return Difference(mean=mean, low=None, high=None, p=None)
    rng = np.random.default_rng(seed)
    seed_weights = _draw_counts(rng, num_seeds, samples) / num_seeds
    column_weights = np.empty((samples, num_columns))
    for task in np.unique(named):
        own = named == task
        column_weights[:, own] = _draw_counts(rng, int(own.sum()), samples) * share[own]
    means = ((seed_weights @ difference) * column_weights).sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Difference(
        mean=mean, low=float(low), high=float(high), p=_two_sided(means, difference.size)
    )


def _draw_counts(rng: np.random.Generator, number: int, samples: int) -> FloatArray:
    """(samples, number) counts of `number` draws with replacement from as many items."""
    drawn: FloatArray = rng.multinomial(number, np.full(number, 1 / number), samples).astype(float)
    return drawn


def _two_sided(means: FloatArray, pairs: int) -> float:
    # one is added so that p is never 0
    below, above = (int(side.sum()) + 1 for side in (means <= 0, means >= 0))
    p = 2 * min(below, above) / (len(means) + 1)
    # the probability that so few pairs have one sign by chance is a lower bound of p
    by_chance: float = 2.0 ** (1 - pairs)
    return min(1.0, max(p, by_chance))
