"""The figure of `isoglot analyze transfer`: source score, target mean and transfer gap.

Reads points (the scores of a model at a step, or at a value of a setting); gives one SVG figure
with a row of charts for each task, and the same numbers as a table. Points with the same name and
x are repetitions: their mean is plotted with a band of one standard deviation. MetaXLM, Figures 1
and 5.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from isoglot.report.chart import Chart, Line, subplots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WIDTH, _HEIGHT = 400, 270


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferPoint:
    """Scores of one model: in the source language, and the mean over the other languages."""

    name: str
    """Name of its line."""
    x: float
    source: float | None
    """None where all scores are of language pairs."""
    target: float
    higher_is_better: bool = True

    @property
    def gap(self) -> float | None:
        """How much worse the target languages are than the source."""
        if self.source is None:
            return None
        gap = self.source - self.target
        return gap if self.higher_is_better else -gap


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferCurves:
    """The points of all lines for one task (or for the held-out loss)."""

    title: str
    unit: str
    points: tuple[TransferPoint, ...]


def plot_transfer(curves: Sequence[TransferCurves], *, x_label: str) -> str:
    """The figure: for each task a chart of the source, of the targets and of the gap."""
    return subplots([_row(one, x_label) for one in curves])


def transfer_rows(curves: TransferCurves) -> list[list[str]]:
    """Rows of name, x, source, targets and gap, one for each plotted point."""
    rows = []
    for name in dict.fromkeys(point.name for point in curves.points):
        columns = [_values(curves.points, name, value) for _, value in _VALUES]
        rows += [
            [name, f"{x:g}", *(_formatted(column.get(x)) for column in columns)]
            for x in columns[1]  # every point has targets
        ]
    return rows


_VALUES: tuple[tuple[str, Callable[[TransferPoint], float | None]], ...] = (
    ("source", lambda point: point.source),
    ("targets", lambda point: point.target),
    ("gap", lambda point: point.gap),
)


def _row(curves: TransferCurves, x_label: str) -> list[Chart]:
    names = list(dict.fromkeys(point.name for point in curves.points))
    integer_x = all(point.x.is_integer() for point in curves.points)
    charts = []
    for name_of_value, value in _VALUES:
        lines = []
        for color, name in enumerate(names):
            values = _values(curves.points, name, value)
            if values:
                lines.append(Line.of_repetitions(name, color, values.items()))
        if lines:
            charts.append(
                Chart(
                    lines=tuple(lines),
                    x_label=x_label,
                    y_label=f"{name_of_value}, {curves.unit}",
                    title=curves.title,
                    width=_WIDTH,
                    height=_HEIGHT,
                    integer_x=integer_x,
                )
            )
    return charts


def _values(
    points: Sequence[TransferPoint], name: str, value: Callable[[TransferPoint], float | None]
) -> dict[float, list[float]]:
    """The values of all repetitions by x, ascending."""
    found: dict[float, list[float]] = defaultdict(list)
    for point in points:
        if point.name == name and (number := value(point)) is not None:
            found[point.x].append(number)
    return dict(sorted(found.items()))


def _formatted(values: list[float] | None) -> str:
    if values is None:
        return "–"
    return f"{fmean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")
