"""Training metrics of runs: metrics.jsonl read as series, averaged over repetitions, plotted.

Records of a step have `total_tokens`; records of a validation have only their step, and get the
tokens of the step before. Values that are not finite are left out. Runs of the same name are
repetitions: their mean is plotted with a band of one standard deviation. Held-out BTMLM perplexity
of a run for each pseudo rate is Figure 5 of ERNIE-M.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from isoglot.errors import nearest
from isoglot.report.chart import Chart, Line, chart_svg
from isoglot.report.inputs import ReportError, group_by_name
from isoglot.report.record_reader import RecordReader, parse_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from isoglot.report.inputs import NamedFolder
    from isoglot.report.record_reader import Record

METRICS_FILE = "metrics.jsonl"
Axis = Literal["steps", "tokens"]


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """The value of a metric at one step."""

    step: int
    tokens: int
    value: float


class RunMetrics:
    """The metrics of one run."""

    def __init__(self, run: Path) -> None:
        """Read metrics.jsonl of a run folder, or the file itself."""
        self.file = run / METRICS_FILE if run.is_dir() else run
        self._records = _read(self.file)
        self._positions: list[tuple[int, int]] = []
        """Step and total tokens of every record."""
        tokens = 0
        for record in self._records:
            tokens = record.get("total_tokens", tokens)
            self._positions.append((record["step"], tokens))

    def names(self) -> list[str]:
        """The names of all metrics, in the order of appearance."""
        names = {name: None for record in self._records for name in record}
        return [name for name in names if name not in {"step", "stage", "total_tokens"}]

    def series(self, metric: str) -> list[MetricPoint]:
        """The finite values of one metric."""
        return [
            MetricPoint(step, tokens, float(record[metric]))
            for record, (step, tokens) in zip(self._records, self._positions, strict=True)
            if isinstance(record.get(metric), int | float) and math.isfinite(record[metric])
        ]

    def require(self, metric: str) -> list[MetricPoint]:
        """The values of one metric; an error with the nearest name where there are none."""
        points = self.series(metric)
        if not points:
            raise ReportError(f"{self.file} has no {metric!r}: {nearest(metric, self.names())}")
        return points


def heldout_by_language(names: Iterable[str]) -> dict[tuple[str, str], dict[str, str]]:
    """(objective, metric) -> language -> name, of names `valid/OBJECTIVE/LANGUAGE/METRIC`.

    Means over languages, and what guessing would score, are left out.
    """
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for name in names:
        if name.startswith("valid/") and name.count("/") == 3:
            _, objective, language, metric = name.split("/")
            if language != "mean" and metric not in ("chance", "pairs"):
                found[objective, metric][language] = name
    return dict(found)


def plot_metric(
    runs: Sequence[NamedFolder],
    metric: str,
    *,
    x_axis: Axis = "steps",
    window: int = 1,
    log: bool = False,
    title: str = "",
) -> str:
    """A metric such as `mlm/loss` of several runs as one SVG figure, with one line for each name.

    Values are averaged over windows of `window` steps; `log` makes the vertical axis logarithmic.
    """
    lines: list[Line] = []
    for name, group in group_by_name(runs).items():
        series = [smooth(RunMetrics(run.path).require(metric), window) for run in group]
        lines.append(mean_line(name, series, x_axis=x_axis, color=len(lines)))
        if log and any(y <= 0 for _, y in lines[-1].points):
            raise ReportError(
                f"{metric!r} of {name} has values of 0 or below, which a logarithmic axis cannot "
                "show. Leave out --log."
            )
    label = metric if window == 1 else f"{metric}, mean of {window} steps"
    chart = Chart(lines=tuple(lines), x_label=x_axis, y_label=label, title=title, log=log)
    return chart_svg(chart)


def mean_line(
    label: str, series: Sequence[Sequence[MetricPoint]], *, x_axis: Axis, color: int = 0
) -> Line:
    """The mean of repetitions at the steps that all of them have."""
    by_step = [{point.step: point for point in points} for points in series]
    steps = sorted(set.intersection(*(set(points) for points in by_step)))
    if not steps:
        raise ReportError(
            f"The runs called {label} have no step in common. Average over windows with --smooth, "
            "or give each run its own name (NAME=RUN)."
        )
    values = []
    for step in steps:
        at_step = [of_run[step] for of_run in by_step]
        x = step if x_axis == "steps" else fmean(point.tokens for point in at_step)
        values.append((x, [point.value for point in at_step]))
    return Line.of_repetitions(label, color, values)


def smooth(points: Sequence[MetricPoint], steps: int) -> list[MetricPoint]:
    """The mean over each window of so many steps, at the middle of the window.

    Windows start at step 1, so that repetitions have the same ones even where an objective was not
    trained at every step.
    """
    if steps <= 1:
        return list(points)
    windows: dict[int, list[MetricPoint]] = defaultdict(list)
    for point in points:
        windows[(point.step - 1) // steps].append(point)
    return [
        MetricPoint(
            number * steps + (steps + 1) // 2,
            round(fmean(point.tokens for point in window)),
            fmean(point.value for point in window),
        )
        for number, window in sorted(windows.items())
    ]


def _read(file: Path) -> list[Record]:
    reader = RecordReader(file)
    try:
        records = list(reader.read())
    except FileNotFoundError as error:
        raise ReportError(f"{file} does not exist. Give a run (runs/NAME).") from error
    except OSError as error:
        raise ReportError(f"{file}: cannot be read ({error}).") from error
    # the last line may be damaged: the run was killed while writing it
    if reader.damaged and reader.damaged[0] < reader.lines:
        raise _damaged(file, reader.damaged[0])
    last = parse_record(reader.rest)
    return records if last is None else [*records, last]


def _damaged(file: Path, line: int) -> ReportError:
    return ReportError(
        f"{file}, line {line}: is not a record of a step. Delete the line, or resume the run from "
        "an earlier checkpoint, which rewrites the file."
    )
