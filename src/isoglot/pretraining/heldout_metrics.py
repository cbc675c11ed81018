"""Numbers of held-out data: which are shares, which way is better, one number of a validation.

It imports no torch: `isoglot watch` follows runs with it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Metric = Literal["retrieval", "loss"]
SHARES = ("accuracy", "chance", "retrieval")
"""Metrics that are shown in percent; of `chance`, no change is shown."""
HIGHER_IS_BETTER = ("accuracy", "retrieval")


def is_better(value: float, other: float, metric: Metric, *, by: float = 0.0) -> bool:
    """Is a number better than another by more than an amount? One that is not finite never is."""
    gain = value - other if metric == "retrieval" else other - value
    return math.isfinite(value) and gain > by


def heldout_value(scores: Mapping[str, float], metric: Metric) -> float | None:
    """The number of a validation's scores (`valid/...`); none if they do not have it.

    Retrieval is the mean over streams of pairs. The loss is the mean over objectives of the mean
    over languages, in nats; that of an objective with perplexity is its logarithm.
    """
    found = []
    for name, value in scores.items():
        _, _, last = name.rpartition("/mean/")
        if metric == last == "retrieval" or metric == last == "loss":
            found.append(value)
        elif metric == "loss" and last == "perplexity":
            found.append(math.log(value))
    return sum(found) / len(found) if found else None
