"""Is one model better than another? A paired bootstrap over seeds and cells.

Reads two tables of values with a row for each seed and a column for each cell, a cell being a task
in a language; gives the mean difference, its interval and how surely it is above nothing. Rows and
columns are drawn again with replacement, the same for both models: the answer is about other seeds
and other languages. It is not about other test sentences, which are drawn once and for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from isoglot.types import FloatArray

SAMPLES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much the second model is above the first."""

    mean: float
    low: float
    """2.5 % of the samples are below."""
    high: float
    """2.5 % of the samples are above."""
    p: float
    """Two-sided: twice the share of samples on the other side of zero, at most 1."""


def paired_bootstrap(
    first: FloatArray, second: FloatArray, *, samples: int = SAMPLES, seed: int = 0
) -> Difference:
    """The difference of two tables (seeds, cells), second less first.

    With one seed only cells are drawn; with few of either, the interval is a rough one.
    """
    assert first.shape == second.shape, "a pair for every value"
    difference = second - first
    rng = np.random.default_rng(seed)
    rows, columns = difference.shape
    means = np.empty(samples)
    for number in range(samples):
        drawn = difference[rng.integers(rows, size=rows)][:, rng.integers(columns, size=columns)]
        means[number] = drawn.mean()
    low, high = np.quantile(means, [0.025, 0.975])
    # one is added so that no p is zero (a sample never proves it)
    below, above = (int((side).sum()) + 1 for side in (means <= 0, means >= 0))
    return Difference(
        mean=float(difference.mean()),
        low=float(low),
        high=float(high),
        p=min(1.0, 2 * min(below, above) / (samples + 1)),
    )
