"""Scores of a validation: which way is better, one number of them, and the line that is printed.

    held out: mlm perplexity 12.35 (-0.42, best), parallel retrieval 24.0 % (-1.0, best 25.0 at 200)

A line has the means over languages, their change since the last validation of the stage, and the
best. The names of scores are those of `validation.py`. No torch is imported: `isoglot watch`
follows runs with this.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Record = Mapping[str, float | int | str]

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


class HeldoutLine:
    """Remembers the validations of a stage, and writes the line of the next."""

    def __init__(self, earlier: Iterable[Record] = ()) -> None:
        """`earlier` are the records of a run that is resumed."""
        self._stage: object = None
        self._last: dict[str, float] = {}
        self._best: dict[str, tuple[float, int]] = {}
        """Name of a metric -> its best value, and the step of it."""
        for record in earlier:
            self(record)

    def __call__(self, record: Record) -> str:
        """The line of a validation's record; other records give an empty one."""
        if record.get("stage") != self._stage:
            self._stage = record.get("stage")
            self._last, self._best = {}, {}
        shown: dict[str, list[str]] = {}
        for name, value in record.items():
            _, *label, where, metric = name.split("/") if name.count("/") > 2 else ("",) * 4
            if where == "mean":
                text = self._show(name, metric, float(value), int(record["step"]))
                shown.setdefault("/".join(label), []).append(f"{metric} {text}")
        line = ", ".join(f"{label} {' '.join(found)}" for label, found in shown.items())
        stale = int(record.get("heldout/stale", 0))
        if stale:
            line += f"; no improvement in {stale} validation{'s' * (stale > 1)}"
        return f"held out: {line}" if line else ""

    def _show(self, name: str, metric: str, value: float, step: int) -> str:
        number, unit = (100 * value, 1) if metric in SHARES else (value, 2)
        text = f"{number:.{unit}f}{' %' if metric in SHARES else ''}"
        if metric == "chance":
            return text
        last, best = self._last.get(name), self._best.get(name)
        self._last[name] = number
        sign = 1 if metric in HIGHER_IS_BETTER else -1
        is_best = best is None or sign * (number - best[0]) > 0
        if is_best:
            self._best[name] = number, step
        if last is None or best is None:
            return text
        compared = "best" if is_best else f"best {best[0]:.{unit}f} at {best[1]}"
        return f"{text} ({number - last:+.{unit}f}, {compared})"
