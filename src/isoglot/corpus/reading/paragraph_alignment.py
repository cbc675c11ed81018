"""Alignment of the paragraphs of two documents by their lengths: Gale and Church (1993).

Among all paths through both documents (one paragraph for one, one for none, two for one, ...) the
likeliest is the one whose lengths fit best. Lengths are in UTF-8 bytes and fit if they have the
ratio of the two documents, first of all paragraphs, then of the aligned ones; the variance is the
paper's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from isoglot.types import FloatArray

MAX_CELLS = 25_000_000
"""Limit of the paragraphs of one document times those of the other."""

_VARIANCE = 6.8
_LEFT_OUT = 4.0
_JOINED = 2.5
_STEPS = np.array([(1, 1), (1, 0), (0, 1), (2, 1), (1, 2), (2, 2)])
"""Numbers of paragraphs that a step takes from either document."""


def align_paragraphs(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """The paragraphs (by index) that translate each other, one for one, in order."""
    if not first or not second or len(first) * len(second) > MAX_CELLS:
        return []
    one, other = (
        np.array([len(text.encode("utf-8", "surrogatepass")) for text in texts], np.float64)
        for texts in (first, second)
    )
    pairs = _pairs(one, other, other.sum() / one.sum())
    if pairs:
        # paragraphs without a counterpart would distort the ratio
        chosen = np.array(pairs)
        pairs = _pairs(one, other, other[chosen[:, 1]].sum() / one[chosen[:, 0]].sum())
    return pairs


def _pairs(one: FloatArray, other: FloatArray, ratio: float) -> list[tuple[int, int]]:
    """The steps of the best path that take one paragraph of each, for this ratio of lengths."""
    taken = _walk(one, other, ratio, _STEPS)
    pairs = []
    i, j = len(one), len(other)
    while i or j:
        down, right = _STEPS[taken[i, j]].tolist()
        i, j = i - down, j - right
        if down == right == 1:
            pairs.append((i, j))
    return pairs[::-1]


@njit(cache=True)
def _walk(  # pragma: no cover - compiled
    one: FloatArray, other: FloatArray, ratio: float, steps: npt.NDArray[np.int64]
) -> npt.NDArray[np.int8]:
    """For each pair of positions in both documents, the last step of the best path to it."""
    costs = np.full((len(one) + 1, len(other) + 1), np.inf)
    taken = np.zeros(costs.shape, np.int8)
    costs[0, 0] = 0
    for i in range(len(one) + 1):
        for j in range(len(other) + 1):
            for step in range(len(steps)):
                down, right = steps[step]
                if i < down or j < right or not i + j:
                    continue
                cost = costs[i - down, j - right] + _LEFT_OUT
                if down and right:
                    left, there = one[i - down : i].sum(), other[j - right : j].sum()
                    mean = (left + there / ratio) / 2
                    distance = abs(left * ratio - there) / math.sqrt(_VARIANCE * mean + 1)
                    cost += -_LEFT_OUT - math.log(max(math.erfc(distance / math.sqrt(2)), 1e-30))
                    cost += _JOINED * (down + right > 2)
                if cost < costs[i, j]:
                    costs[i, j] = cost
                    taken[i, j] = step
    return taken
