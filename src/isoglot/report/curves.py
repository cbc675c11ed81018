"""A metric of several runs against steps or tokens, as one SVG figure.

With held-out BTMLM perplexity and a run for each pseudo rate this is Figure 5 of ERNIE-M. Runs of
one name are repetitions: their mean is drawn, in a band of one standard deviation to each side.
"""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING

from isoglot.report.chart import Chart, Line, svg
from isoglot.report.errors import ReportError
from isoglot.report.inputs import by_name
from isoglot.report.metrics import Axis, Metrics, Point, smoothed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.report.inputs import Named


def draw_curves(
    runs: Sequence[Named],
    metric: str,
    *,
    against: Axis = "steps",
    smooth: int = 1,
    log: bool = False,
    title: str = "",
) -> str:
    """The figure, one line for each name.

    Args:
        runs: Folders with a metrics.jsonl, or such files, with their names in the legend.
        metric: As the file names it, such as `valid/btmlm/mean perplexity` or `mlm/loss`.
        against: What the horizontal axis counts.
        smooth: Draw the mean of every so many steps.
        log: A logarithmic vertical axis.
        title: Above the figure.
    """
    lines: list[Line] = []
    for name, group in by_name(runs).items():
        series = [smoothed(Metrics(run.path).require(metric), smooth) for run in group]
        lines.append(joined(name, series, against=against, colour=len(lines)))
        if log and any(y <= 0 for _, y in lines[-1].points):
            raise ReportError(
                f"{metric!r} of {name} is not always above 0, and cannot be drawn on a logarithmic "
                "axis. Leave out --log."
            )
    label = metric if smooth == 1 else f"{metric}, mean of {smooth} steps"
    return svg(Chart(lines=tuple(lines), x_label=against, y_label=label, title=title, log=log))


def joined(
    label: str, series: Sequence[Sequence[Point]], *, against: Axis, colour: int = 0
) -> Line:
    """The mean of repetitions at the steps that all of them have."""
    tables = [{point.step: point for point in points} for points in series]
    steps = sorted(set.intersection(*(set(table) for table in tables)))
    if not steps:
        raise ReportError(
            f"The runs called {label} were noted at no common step. Join steps with --smooth, or "
            "give each run a name of its own (NAME=RUN)."
        )
    points, spread = [], []
    for step in steps:
        there = [table[step] for table in tables]
        values = [point.value for point in there]
        x = step if against == "steps" else fmean(point.tokens for point in there)
        points.append((x, fmean(values)))
        spread.append(stdev(values) if len(values) > 1 else 0.0)
    return Line(
        label=label,
        colour=colour,
        points=tuple(points),
        spread=tuple(spread) if any(spread) else (),
    )
