"""A pre-training run as its files tell it, while it runs or afterwards: `isoglot watch`.

    RUN/metrics.jsonl --records--> losses, held-out scores, speed, warnings
    RUN/stages.json, plan.json, recipe.yaml --> steps of all stages
    RUN/stopped.json, RUN/model --> how it ended

Only files are read, and no torch is imported: the run may be on another machine. The memory does
not grow with the run: a curve has at most 512 points, each the mean of equally many steps.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot import json_text, yaml_text
from isoglot.errors import IsoglotError
from isoglot.folders import run_folder
from isoglot.pretraining.monitoring.heldout_scores import HIGHER_IS_BETTER, SHARES, HeldoutLine
from isoglot.pretraining.monitoring.worsening import RisingLossWriter, WorseningWriter
from isoglot.progress import duration
from isoglot.report.metrics import METRICS_FILE, heldout_by_language
from isoglot.report.record_reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from isoglot.report.record_reader import Record

MAX_POINTS = 512
"""Points of a curve."""
_STEPS_AVERAGED = 50
"""Steps that losses, speed and the time left are averaged over."""
_QUIET_SECONDS = 120.0
"""Seconds without a record after which a run is said to be quiet."""


class Curve:
    """A number over all steps, as means of equally many of them."""

    def __init__(self) -> None:
        self.points: list[float] = []
        self._block: list[float] = []
        self._size = 1
        """Values of a point."""

    def add(self, value: float) -> None:
        """Take the next value; one that is not finite has no place on a curve."""
        if not math.isfinite(value):
            return
        self._block.append(value)
        if len(self._block) < self._size:
            return
        self.points.append(sum(self._block) / self._size)
        self._block.clear()
        if len(self.points) == MAX_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [(first + second) / 2 for first, second in pairs]
            self._size *= 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldoutScore:
    """One language, or the mean over languages, of a validation."""

    language: str
    value: float
    change: float | None
    """Since the validation before; None for the first of a stage."""
    metric: str

    def describe(self) -> str:
        """Language, value and change: `de 12.35 (-0.42)`."""
        scale, digits = (100, 1) if self.metric in SHARES else (1, 2)
        unit = " %" if self.metric in SHARES else ""
        text = f"{self.language} {scale * self.value:.{digits}f}{unit}"
        return text if self.change is None else f"{text} ({scale * self.change:+.{digits}f})"

    @property
    def is_better(self) -> bool | None:
        """Whether the change is an improvement; None without a change."""
        if not self.change:
            return None
        return (self.change > 0) == (self.metric in HIGHER_IS_BETTER)


class LiveRun:
    """The state of one run; `update` reads what is new."""

    def __init__(self, name: str, path: Path) -> None:
        """`path` is the run's folder, or its model/."""
        self.folder = run_folder(path)
        self.name = name
        self.reader = RecordReader(self.folder / METRICS_FILE)
        self.total_steps: int | None = None
        """Steps of all stages; None where the length is in epochs and no file tells the steps."""
        self._clear()

    def _clear(self) -> None:
        self.step = self.stage = self.tokens = self.skipped = 0
        self.learning_rate = math.nan
        self.losses: dict[str, Curve] = {}
        self.recent: dict[str, deque[float]] = {}
        """Objective -> its last losses."""
        self.heldout: dict[tuple[str, str], list[HeldoutScore]] = {}
        """(objective, metric) -> the last validation, the mean first."""
        self.warnings: list[str] = []
        self._rates: deque[tuple[float, float]] = deque(maxlen=_STEPS_AVERAGED)
        self._heldout_values: dict[str, float] = {}
        self._heldout_line = HeldoutLine()
        self._contrast: frozenset[str] = frozenset()
        self._start_monitors()

    def _start_monitors(self) -> None:
        """The warnings that the run itself gives, from its records."""
        self._monitors = (
            RisingLossWriter(self.warnings.append, self._contrast),
            WorseningWriter(self.warnings.append, self._contrast),
        )

    def update(self, say: Callable[[str], None] | None = None) -> None:
        """Read what is new; `say` gets a line for each record.

        Raises:
            IsoglotError: the file is there and cannot be read.
        """
        steps = stage_steps(self.folder)
        self.total_steps = None if steps is None else sum(steps)
        if self.reader.restarted():
            self._clear()
            if say is not None:
                say(f"{self.name} continues from an earlier step: its file was cut")
        try:
            for record in self.reader.read():
                self._take(record, say)
        except FileNotFoundError:
            pass  # not yet written, or just being replaced
        except OSError as error:
            raise IsoglotError(f"{self.reader.file}: cannot be read ({error}).") from error

    def _take(self, record: Record, say: Callable[[str], None] | None) -> None:
        try:
            stage = int(record.get("stage", 0))
            if stage != self.stage:
                self.stage = stage
                self.losses, self.recent, self.heldout = {}, {}, {}
                self._heldout_values.clear()
                self._rates.clear()
            self.step = record["step"]
            is_step = "seconds" in record
            self._take_step(record) if is_step else self._take_validation(record)
            told = "" if is_step else self._heldout_line(record)
        except (TypeError, ValueError):  # written by something else than a run
            self.warnings.append(f"a record of step {self.step} has a value that is not a number.")
            return
        if say is not None and (is_step or told):
            say(self._line() if is_step else f"{self.name} step {self.steps_done}  {told}")

    def _take_step(self, record: Record) -> None:
        for name in record:
            if name.endswith("/loss"):
                label, value = name.removesuffix("/loss"), float(record[name])
                self.losses.setdefault(label, Curve()).add(value)
                self.recent.setdefault(label, deque(maxlen=_STEPS_AVERAGED)).append(value)
                if not math.isfinite(value):
                    self.warnings.append(f"the loss of {label} is {value} at step {self.step}.")
        contrast = {name.removesuffix("/chance") for name in record if name.endswith("/chance")}
        if not contrast <= self._contrast:
            self._contrast |= contrast
            self._start_monitors()
        self.skipped += bool(record.get("skipped"))
        self.learning_rate = float(record.get("learning_rate", math.nan))
        self.tokens = int(record.get("total_tokens", self.tokens))
        self._rates.append((float(record["tokens"]), float(record["seconds"])))
        self._watch(record)

    def _take_validation(self, record: Record) -> None:
        for (objective, metric), own in heldout_by_language(record).items():
            ordered = {"mean": f"valid/{objective}/mean/{metric}", **own}
            self.heldout[objective, metric] = [
                self._score(code, metric, name, float(record[name]))
                for code, name in ordered.items()
                if name in record
            ]
        self._watch(record)

    def _score(self, language: str, metric: str, name: str, value: float) -> HeldoutScore:
        before = self._heldout_values.get(name)
        self._heldout_values[name] = value
        change = None if before is None else value - before
        return HeldoutScore(language=language, value=value, change=change, metric=metric)

    def _watch(self, record: Record) -> None:
        finite = {k: v for k, v in record.items() if not isinstance(v, float) or math.isfinite(v)}
        for monitor in self._monitors:
            monitor.write(finite)

    def _line(self) -> str:
        """The record of a step in one line, for a log."""
        shown = [f"{self.name} step {self.steps_done}"]
        shown += [f"{name} {values[-1]:.3f}" for name, values in self.recent.items()]
        if math.isfinite(self.learning_rate):
            shown.append(f"lr {self.learning_rate:.3g}")
        shown.append(f"{self.speed or 0:,.0f} tokens/s")
        if self.time_left is not None:
            shown.append(f"{duration(self.time_left)} left")
        return "  ".join(shown)

    @property
    def steps_done(self) -> str:
        """The step and, where it is known, the last one: `12/800`."""
        return f"{self.step}" if self.total_steps is None else f"{self.step}/{self.total_steps}"

    @property
    def speed(self) -> float | None:
        """Tokens a second over the last steps."""
        seconds = sum(seconds for _, seconds in self._rates)
        return sum(tokens for tokens, _ in self._rates) / seconds if seconds else None

    @property
    def time_left(self) -> float | None:
        """Seconds of the remaining steps at the present speed; None where they are not known."""
        if self.total_steps is None or not self._rates:
            return None
        seconds = sum(seconds for _, seconds in self._rates) / len(self._rates)
        return max(0, self.total_steps - self.step) * seconds

    def ending(self) -> str | None:
        """How the run ended; None while it runs."""
        stopped = _read_json(self.folder / STOPPED)
        if stopped is not None:
            return (
                f"stopped by {stopped.get('signal', 'a signal')} after step "
                f"{stopped.get('step', self.step)}; isoglot pretrain ... --resume continues it"
            )
        total = self.total_steps
        if not (total is not None and self.step >= total > 0) and not self._is_exported():
            return None
        exported = "; model exported" if self._is_exported() else "; the model is being exported"
        if total is not None and self.step < total:
            return f"ended early at step {self.step} of {total}{exported}"
        return f"finished at step {self.step}{exported}"

    def _is_exported(self) -> bool:
        """Whether the model is newer than the last record."""
        try:
            model = (self.folder / "model" / "config.json").stat().st_mtime
            return model >= self.reader.file.stat().st_mtime
        except OSError:
            return False

    def quiet_for(self) -> float | None:
        """Seconds since the last record, where they are unusually many."""
        try:
            seconds = time.time() - self.reader.file.stat().st_mtime
        except OSError:
            return None
        one = max((seconds for _, seconds in self._rates), default=0.0)
        return seconds if seconds > max(_QUIET_SECONDS, 20 * one) else None


STOPPED, _STAGES, _PLAN, _RECIPE = "stopped.json", "stages.json", "plan.json", "recipe.yaml"


def stage_steps(folder: Path) -> Sequence[int] | None:
    """The steps of each stage of a run: from stages.json, its plan, or its recipe."""
    for name in (_STAGES, _PLAN):
        steps = (_read_json(folder / name) or {}).get("steps")
        if isinstance(steps, list) and steps and all(type(one) is int for one in steps):
            return steps
    try:
        recipe, _ = yaml_text.read(folder / _RECIPE)
        found = [stage["steps"] for stage in recipe["stages"]]
    except (OSError, IsoglotError, KeyError, TypeError):
        return None
    return found if found and all(type(one) is int for one in found) else None


def _read_json(file: Path) -> Record | None:
    """A JSON object of a run; None where the file is missing, or just being written."""
    try:
        content = json_text.parse(file.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
