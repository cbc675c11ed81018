"""Source score, target score and transfer gap of models, as curves: Figures 1 and 5 of MetaXLM.

Reads points (a model's scores at some step, or at some value of a setting); gives one SVG figure
with a row of panels for each thing that was scored, and the same as a table. Points of one name and
place are repetitions: their mean is drawn, in a band of one standard deviation to each side.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from isoglot.report.chart import Chart, Line
from isoglot.report.panels import panels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WIDTH, _HEIGHT = 400, 270


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one model reaches in the source language and, on average, in the others."""

    name: str
    """Of the line it belongs to."""
    x: float
    source: float | None
    """None where all that is scored has two languages."""
    target: float
    higher_is_better: bool = True

    @property
    def gap(self) -> float | None:
        """How much worse the others are than the source."""
        if self.source is None:
            return None
        gap = self.source - self.target
        return gap if self.higher_is_better else -gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One thing that was scored: its name, its unit, and the points of all lines."""

    title: str
    unit: str
    points: tuple[Point, ...]


def draw_transfer(scored: Sequence[Scored], *, x_label: str) -> str:
    """The figure: for each thing, the source, the targets and the gap, as far as there are any."""
    return panels([_row(one, x_label) for one in scored])


def transfer_rows(scored: Scored) -> list[list[str]]:
    """Name, place, source, target, gap: a line for each point that is drawn."""
    rows = []
    for name in dict.fromkeys(point.name for point in scored.points):
        columns = [_means(scored.points, name, value) for _, value in _VALUES]
        rows += [
            [name, f"{x:g}", *(_said(column.get(x)) for column in columns)]
            for x in columns[1]  # every point has targets
        ]
    return rows


_VALUES: tuple[tuple[str, Callable[[Point], float | None]], ...] = (
    ("source", lambda point: point.source),
    ("targets", lambda point: point.target),
    ("gap", lambda point: point.gap),
)


def _row(scored: Scored, x_label: str) -> list[Chart]:
    names = list(dict.fromkeys(point.name for point in scored.points))
    whole = all(point.x.is_integer() for point in scored.points)
    charts = []
    for what, value in _VALUES:
        lines = []
        for colour, name in enumerate(names):
            means = _means(scored.points, name, value)
            if means:
                lines.append(_line(name, colour, means))
        if lines:
            charts.append(
                Chart(
                    lines=tuple(lines),
                    x_label=x_label,
                    y_label=f"{what}, {scored.unit}",
                    title=scored.title,
                    width=_WIDTH,
                    height=_HEIGHT,
                    whole=whole,
                )
            )
    return charts


def _line(name: str, colour: int, means: dict[float, list[float]]) -> Line:
    spread = tuple(stdev(values) if len(values) > 1 else 0.0 for values in means.values())
    return Line(
        label=name,
        colour=colour,
        points=tuple((x, fmean(values)) for x, values in means.items()),
        spread=spread if any(spread) else (),
    )


def _means(
    points: Sequence[Point], name: str, value: Callable[[Point], float | None]
) -> dict[float, list[float]]:
    """Place -> the values of all repetitions there, ascending."""
    found: dict[float, list[float]] = defaultdict(list)
    for point in points:
        if point.name == name and (number := value(point)) is not None:
            found[point.x].append(number)
    return dict(sorted(found.items()))


def _said(values: list[float] | None) -> str:
    if values is None:
        return "–"
    return f"{fmean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")
