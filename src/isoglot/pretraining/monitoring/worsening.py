"""Warnings about losses that rise, and about contrast that gets worse over several validations.

A training loss is compared with its lowest mean over 25 steps. Of contrast, two numbers are looked
at, in each stage by itself: held-out retrieval, and the training loss of each contrastive
objective, averaged over the steps between two validations. One is reported, once, when at three
validations in a row it was clearly worse than its best value:

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

from isoglot.pretraining.monitoring.heldout_scores import heldout_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from isoglot.pretraining.monitoring.writers import Record

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
        contrast: Iterable[str],
        earlier: Iterable[Record] = (),
    ) -> None:
        """`contrast` are the names of the contrastive objectives."""
        self._warn: Callable[[str], None] = lambda _: None
        self._losses: dict[str, list[float]] = {name: [] for name in contrast}
        """Contrastive objective -> its losses since the last validation."""
        self._stage = 0
        self._series: dict[tuple[int, str], _Series] = {}
        """(stage, objective or retrieval)"""
        for record in earlier:
            self.write(record)
        self._warn = warn

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


_BLOCK = 25
"""Steps whose losses are averaged, to compare them with earlier ones."""
_RISE = 1.15
"""A loss that rises by this factor over its lowest mean is reported."""
_STANDARD_ERRORS = 4.0
"""And by so many standard errors of the difference of both means."""


class RisingLossWriter:
    """Warns once, by stage and objective, of a training loss that rises above its past minimum.

    Objectives of `watched` are left to another writer.
    """

    def __init__(self, warn: Callable[[str], None], watched: Iterable[str] = ()) -> None:
        self._warn, self._watched = warn, frozenset(watched)
        self._losses: dict[tuple[int, str], list[float]] = {}
        self._lowest: dict[tuple[int, str], tuple[float, float, int]] = {}
        """(stage, objective) -> the lowest mean of a block, its variance, and its last step"""
        self._warned: set[tuple[int, str]] = set()

    def write(self, record: Record) -> None:
        """Look at the losses of a step; records of validations are passed over."""
        if "seconds" not in record:
            return
        for name, value in record.items():
            if name.endswith("/loss") and name.removesuffix("/loss") not in self._watched:
                key = int(record["stage"]), name.removesuffix("/loss")
                block = self._losses.setdefault(key, [])
                block.append(float(value))
                if len(block) == _BLOCK:
                    self._compare(key, mean(block), variance(block) / _BLOCK, int(record["step"]))
                    block.clear()

    def _compare(self, key: tuple[int, str], now: float, error: float, step: int) -> None:
        lowest, its_error, when = self._lowest.get(key, (math.inf, 0.0, 0))
        if now < lowest:
            self._lowest[key] = now, error, step
            return
        clear = now - lowest > _STANDARD_ERRORS * math.sqrt(error + its_error)
        if now > _RISE * lowest and clear and key not in self._warned:
            self._warned.add(key)
            self._warn(
                f"the loss of {key[1]} has risen from {lowest:.2f} (step {when}) to {now:.2f} "
                f"(step {step}). A queue of negatives that fills up does that; otherwise lower "
                "optimizer.learning_rate, and look at the held-out scores."
            )

    def close(self) -> None:
        """Nothing to close."""
