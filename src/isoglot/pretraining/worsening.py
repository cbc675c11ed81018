"""A warning when contrast gets worse over several validations.

Two numbers are looked at, in each stage by itself: held-out retrieval, and the training loss of
each contrastive objective, averaged over the steps between two validations. One is reported, once,
when at three validations in a row it was clearly worse than its best value:

- retrieval by more than three standard errors of the difference of two shares of n pairs, as if
  both were of different pairs (they are of the same ones, so this is careful);
- a loss by more than 5 % and three standard errors of the difference of both means.

Three, because the best of many validations is two standard errors above the mean by chance. Of runs
of 50 validations with nothing but noise, 4 in 100 are told (`test_worsening.py`); a single bad
validation never is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import mean, variance
from typing import TYPE_CHECKING

from isoglot.objectives.contrast.pooling import ContrastObjective
from isoglot.pretraining.early_stopping import heldout_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from isoglot.objectives import Objective
    from isoglot.pretraining.writers import Record

_IN_A_ROW = 3
_MIN_STEPS = 10
"""Fewer steps between two validations are averaged together with the next ones."""
_STANDARD_ERRORS = 3.0
_LOSS_RISE = 1.05


@dataclass(slots=True)
class _Series:
    """One number over the validations of a stage."""

    best: tuple[float, float, int] | None = None
    """The best value, its variance, and its step."""
    worse: list[float] = field(default_factory=list)
    """The last values, as long as they are clearly worse."""
    told: bool = False

    def add(self, value: float, error: float, step: int, *, higher: bool) -> bool:
        """Take the value of a validation, and its variance; True if it has to be reported."""
        if self.best is None or (value > self.best[0] if higher else value < self.best[0]):
            self.best = value, error, step
            self.worse.clear()
            return False
        if not self._is_clear(value, error, higher=higher):
            self.worse.clear()
            return False
        self.worse.append(value)
        report = len(self.worse) == _IN_A_ROW and not self.told
        self.told |= report
        return report

    def _is_clear(self, value: float, error: float, *, higher: bool) -> bool:
        assert self.best is not None
        best, its_error, _ = self.best
        spread = math.sqrt(error + its_error)
        if higher:
            return best - value > _STANDARD_ERRORS * spread
        return value > _LOSS_RISE * best and value - best > _STANDARD_ERRORS * spread


class WorseningWriter:
    """Looks at the records of a run; `earlier` are those of one that is resumed."""

    def __init__(
        self,
        warn: Callable[[str], None],
        objectives: Mapping[str, Objective],
        earlier: Iterable[Record] = (),
    ) -> None:
        self._warn: Callable[[str], None] = lambda _: None
        contrast = [n for n, one in objectives.items() if isinstance(one, ContrastObjective)]
        self._losses: dict[str, list[float]] = {name: [] for name in contrast}
        """Contrastive objective -> its losses since the last validation."""
        self._stage = 0
        self._series: dict[tuple[int, str], _Series] = {}
        """(stage, objective or retrieval)"""
        for record in earlier:
            self.write(record)
        self._warn = warn

    @property
    def objectives(self) -> list[str]:
        """The contrastive objectives, whose training losses it looks at."""
        return list(self._losses)

    def write(self, record: Record) -> None:
        """Take the record of a step, or of a validation."""
        stage, step = int(record.get("stage", 0)), int(record["step"])
        if stage != self._stage:
            self._stage = stage
            for values in self._losses.values():
                values.clear()
        if "seconds" in record:
            for name, values in self._losses.items():
                if f"{name}/loss" in record:
                    values.append(float(record[f"{name}/loss"]))
            return
        scores = {name: float(value) for name, value in record.items() if name.startswith("valid/")}
        self._retrieval(scores, stage, step)
        for name, values in self._losses.items():
            if len(values) >= _MIN_STEPS:
                self._loss(name, values, stage, step)
                values.clear()

    def _retrieval(self, scores: Mapping[str, float], stage: int, step: int) -> None:
        value = heldout_value(scores, "retrieval")
        pairs = sum(number for name, number in scores.items() if name.endswith("/pairs"))
        if value is None or not pairs:
            return
        series = self._series.setdefault((stage, ""), _Series())
        if series.add(value, value * (1 - value) / pairs, step, higher=True):
            assert series.best is not None
            since = ", ".join(f"{100 * one:.1f} %" for one in series.worse)
            self._warn(
                f"held-out retrieval is worse than its best for {_IN_A_ROW} validations: "
                f"{100 * series.best[0]:.1f} % at step {series.best[2]}, then {since} (step "
                f"{step}). Lower optimizer.learning_rate; early_stopping ends such a run, and "
                "export.checkpoint: best exports its best step."
            )

    def _loss(self, name: str, values: list[float], stage: int, step: int) -> None:
        series = self._series.setdefault((stage, name), _Series())
        if series.add(mean(values), variance(values) / len(values), step, higher=False):
            assert series.best is not None
            since = ", ".join(f"{one:.3g}" for one in series.worse)
            self._warn(
                f"the training loss of {name} is above its lowest for {_IN_A_ROW} validations: "
                f"{series.best[0]:.3g} until step {series.best[2]}, then {since} (step {step}). A "
                "queue of negatives that fills up does that once; otherwise lower "
                "optimizer.learning_rate, and look at held-out retrieval."
            )

    def close(self) -> None:
        """Nothing to close."""
