"""Is one model better than another? A paired bootstrap over seeds and languages.

Reads two tables of values with a row for each seed and a column for each cell, a cell being a task
in a language; gives the mean difference, its interval and how surely it is above nothing. Seeds,
and within each task its languages, are drawn again with replacement, the same for both models;
values are averaged over a task's languages first and then over tasks. The answer is about other
seeds and other languages. It is not about other test sentences, which are drawn once and for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.types import FloatArray

SAMPLES = 10_000
FEWEST = 6
"""Pairs of values below which nothing can be said: all of one sign, five have 1 chance in 16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much the second model is above the first."""

    mean: float
    low: float | None
    """2.5 % of the samples are below; none where there are fewer than `FEWEST` pairs."""
    high: float | None
    """2.5 % of the samples are above; likewise."""
    p: float | None
    """Two-sided: twice the share of samples on the other side of zero, at most 1; likewise."""


def paired_bootstrap(
    first: FloatArray,
    second: FloatArray,
    tasks: Sequence[str] | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Difference:
    """The difference of two tables (seeds, cells), second less first.

    With one seed only languages are drawn, and with one language a task has always the same.

    Args:
        first: values of the one model.
        second: values of the other, for the same seeds and cells.
        tasks: the task of each cell; none: all are of one.
        samples: how many are drawn.
        seed: decides which.
    """
    assert first.shape == second.shape, "a pair for every value"
    difference = second - first
    seeds, cells = difference.shape
    named = np.zeros(cells, int) if tasks is None else np.unique(tasks, return_inverse=True)[1]
    share = 1 / np.bincount(named)[named] / len(np.unique(named))
    mean = float((difference.mean(0) * share).sum())
    if difference.size < FEWEST:
        return Difference(mean=mean, low=None, high=None, p=None)
    rng = np.random.default_rng(seed)
    of_seeds = _times(rng, seeds, samples) / seeds
    of_cells = np.empty((samples, cells))
    for task in np.unique(named):
        own = named == task
        of_cells[:, own] = _times(rng, int(own.sum()), samples) * share[own]
    means = ((of_seeds @ difference) * of_cells).sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Difference(
        mean=mean, low=float(low), high=float(high), p=_two_sided(means, difference.size)
    )


def _times(rng: np.random.Generator, number: int, samples: int) -> FloatArray:
    """How often each of a number is drawn, in as many draws; a row a sample."""
    drawn: FloatArray = rng.multinomial(number, np.full(number, 1 / number), samples).astype(float)
    return drawn


def _two_sided(means: FloatArray, pairs: int) -> float:
    # one is added so that no p is zero (a sample never proves it)
    below, above = (int(side.sum()) + 1 for side in (means <= 0, means >= 0))
    p = 2 * min(below, above) / (len(means) + 1)
    # so few pairs have one sign by chance as often as that, which no resampling of them can show
    by_chance: float = 2.0 ** (1 - pairs)
    return min(1.0, max(p, by_chance))
