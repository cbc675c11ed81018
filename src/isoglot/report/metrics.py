"""metrics.jsonl of a run, read back as series: one metric against steps or tokens.

Records of a step have `total_tokens`; those of a validation have only their step, and get the
tokens of the step they follow. Numbers that are not finite are left out.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from isoglot.errors import nearest
from isoglot.report.errors import ReportError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE = "metrics.jsonl"
Axis = Literal["steps", "tokens"]


@dataclass(frozen=True, slots=True)
class Point:
    """A metric at one moment of a run."""

    step: int
    tokens: int
    value: float


class Metrics:
    """The records of one run."""

    def __init__(self, run: Path) -> None:
        self.file = run / FILE if run.is_dir() else run
        self._records = _read(self.file)
        self._places = _places(self._records)

    def names(self) -> list[str]:
        """Every metric there is, in the order of appearance."""
        names = {name: None for record in self._records for name in record}
        return [name for name in names if name not in {"step", "stage", "total_tokens"}]

    def series(self, metric: str) -> list[Point]:
        """One metric, where it was noted and is finite."""
        return [
            Point(step, tokens, float(record[metric]))
            for record, (step, tokens) in zip(self._records, self._places, strict=True)
            if isinstance(record.get(metric), int | float) and math.isfinite(record[metric])
        ]

    def require(self, metric: str) -> list[Point]:
        """One metric, or a sentence that says what there is instead."""
        points = self.series(metric)
        if not points:
            raise ReportError(f"{self.file} has no {metric!r}: {nearest(metric, self.names())}")
        return points


def smoothed(points: Sequence[Point], steps: int) -> list[Point]:
    """The mean over each window of so many steps, at the window's middle.

    Windows are counted from the first step of a run, so that repetitions have the same ones, also
    where an objective was not drawn at every step.
    """
    if steps <= 1:
        return list(points)
    windows: dict[int, list[Point]] = defaultdict(list)
    for point in points:
        windows[(point.step - 1) // steps].append(point)
    return [
        Point(
            number * steps + (steps + 1) // 2,
            round(fmean(point.tokens for point in window)),
            fmean(point.value for point in window),
        )
        for number, window in sorted(windows.items())
    ]


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise ReportError(f"{file} does not exist. Give a run (runs/NAME).") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"{file}: cannot be read ({error}).") from error
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):
                break  # the line being written by a run that goes on, or was killed there
            raise _damaged(file, number) from error
        if not isinstance(record, dict) or not isinstance(record.get("step"), int):
            raise _damaged(file, number)
        records.append(record)
    return records


def _damaged(file: Path, line: int) -> ReportError:
    return ReportError(
        f"{file}, line {line}: is no record of a step. Delete the line, or resume the run from an "
        "earlier checkpoint, which writes the file anew."
    )


def _places(records: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Step and tokens of every record."""
    tokens = 0
    places = []
    for record in records:
        tokens = record.get("total_tokens", tokens)
        places.append((record["step"], tokens))
    return places
