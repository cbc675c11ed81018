"""Line charts as SVG, and figures of several charts (`subplots`).

Every mark has its color as an attribute, so that the SVG alone is a figure for a paper, and a
class (`k0`, `grid`, ...), so that the style sheet of a page can set the colors of a dark theme.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from isoglot.report import colors
from isoglot.report.names import MAX_LABEL, display_width, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_RIGHT, _TOP, _BOTTOM = 22, 14, 44
_LEGEND_LINE = 19
_HEIGHT = re.compile(r' height="(\d+)"')
_LETTER = 6.6
"""Average width of a 12-pixel letter, for the layout of legends."""
_MARKED = 30
"""Lines with at most this many points show markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart."""

    label: str
    color: int
    """Index of its color: a model has the same in every chart of a page."""
    points: tuple[tuple[float, float], ...]
    spread: tuple[float, ...] = ()
    """Half the height of the band around each point; empty with one repetition.

    A band ends at 0 where no value of the line is negative: a speed is not.
    """

    def band(self) -> list[tuple[float, float]]:
        """The lower and the upper end of the band at each point."""
        halves = self.spread or (0.0,) * len(self.points)
        least = 0.0 if all(y >= 0 for _, y in self.points) else -math.inf
        ends = zip(self.points, halves, strict=True)
        return [(max(y - half, least), y + half) for (_, y), half in ends]

    @classmethod
    def of_repetitions(
        cls, label: str, color: int, values: Iterable[tuple[float, Sequence[float]]]
    ) -> Line:
        """The mean of the values at each x, with a band of one standard deviation."""
        found = list(values)
        spread = tuple(stdev(ys) if len(ys) > 1 else 0.0 for _, ys in found)
        return cls(
            label=label,
            color=color,
            points=tuple((x, fmean(ys)) for x, ys in found),
            spread=spread if any(spread) else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines over common axes."""

    lines: tuple[Line, ...]
    x_label: str
    y_label: str
    title: str = ""
    log: bool = False
    width: int = 720
    height: int = 400
    integer_x: bool = True
    """Is the horizontal axis a count (steps, tokens, layers), with ticks only at integers?"""


def chart_svg(chart: Chart) -> str:
    """The chart as one `<svg>` element."""
    frame = _Frame(chart)
    legend, legend_height = _legend(chart, frame.left)
    total = chart.height + legend_height
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {chart.width} {total}" '
        f'width="{chart.width}" height="{total}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">'
    )
    title = chart.title or f"{chart.y_label} against {chart.x_label}"
    parts = [
        opening,
        f"<title>{escape(shorten(title))}</title>",
        f'<rect class="paper" width="{chart.width}" height="{total}" fill="{colors.PAPER[0]}"/>',
    ]
    if chart.title:
        parts.append(
            f'<text class="ink" x="{frame.left}" y="22" font-size="14" font-weight="600" '
            f'fill="{colors.INK[0]}">{escape(shorten(chart.title))}</text>'
        )
    parts += frame.axes()
    for line in chart.lines:
        parts += frame.line(line)
    return "\n".join([*parts, *legend, "</svg>"])


def subplots(rows: Sequence[Sequence[Chart]]) -> str:
    """Rows of charts as one `<svg>` element."""
    parts: list[str] = []
    width = y = 0
    for row in rows:
        x, row_height = 0, 0
        for chart in row:
            drawn = chart_svg(chart)
            height = _HEIGHT.search(drawn)
            assert height is not None, "chart_svg writes its height"
            parts.append(drawn.replace("<svg ", f'<svg x="{x}" y="{y}" ', 1))
            x, row_height = x + chart.width, max(row_height, int(height[1]))
        width, y = max(width, x), y + row_height
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" '
        f'height="{y}">'
    )
    paper = f'<rect class="paper" width="{width}" height="{y}" fill="{colors.PAPER[0]}"/>'
    return "\n".join([opening, paper, *parts, "</svg>"])


class _Frame:
    """The plot area, and the coordinates of values in it."""

    def __init__(self, chart: Chart) -> None:
        self._chart = chart
        xs = [x for line in chart.lines for x, _ in line.points]
        self._x_range = _widened(min(xs), max(xs))
        self._y_range = self._y_extent()
        ticks_of: Callable[[float, float], list[float]]
        ticks_of = log_ticks if chart.log else linear_ticks
        self._y_ticks = ticks_of(*self._y_range)
        longest = max((len(format_tick(tick)) for tick in self._y_ticks), default=0)
        self.left = round(30 + _LETTER * longest + 8)
        self._right = chart.width - _RIGHT
        self._top, self._bottom = _TOP + (22 if chart.title else 0), chart.height - _BOTTOM

    def _y_extent(self) -> tuple[float, float]:
        lows, highs = [], []
        for line in self._chart.lines:
            for (_, y), (low, high) in zip(line.points, line.band(), strict=True):
                lows.append(y if self._chart.log and low <= 0 else low)
                highs.append(high)
        low, high = _widened(min(lows), max(highs))
        if self._chart.log:
            return low / (high / low) ** 0.04, high * (high / low) ** 0.04
        margin = 0.05 * (high - low)
        return (0.0 if 0 <= low < margin else low - margin), high + margin

    def x(self, value: float) -> float:
        low, high = self._x_range
        return self.left + (value - low) / (high - low) * (self._right - self.left)

    def y(self, value: float) -> float:
        low, high = self._y_range
        if self._chart.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, low))
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return self._bottom - share * (self._bottom - self._top)

    def axes(self) -> list[str]:
        """Grid lines, ticks and axis labels."""
        parts = []
        for tick in self._y_ticks:
            y = self.y(tick)
            parts.append(
                f'<path class="grid" d="M{self.left} {y:.1f}H{self._right}" stroke="#dde2e7"/>'
            )
            parts.append(_text(format_tick(tick), self.left - 8, y + 4, anchor="end"))
        parts += [
            _text(format_tick(tick), self.x(tick), self._bottom + 18)
            for tick in linear_ticks(*self._x_range, limit=8)
            if tick.is_integer() or not self._chart.integer_x
        ]
        middle = (self._top + self._bottom) / 2
        along = f"M{self.left} {self._bottom}H{self._right}"
        name = _text(self._chart.y_label, 14, middle + 4)
        parts += [
            f'<path class="axis" d="{along}" stroke="#8a939d" fill="none"/>',
            _text(self._chart.x_label, (self.left + self._right) / 2, self._bottom + 37),
            f'<g transform="rotate(-90 14 {middle:.0f})">{name}</g>',
        ]
        return parts

    def line(self, line: Line) -> list[str]:
        """A line with its band and markers."""
        light, kind, dashed = _stroke(line)
        places = [(self.x(x), self.y(y)) for x, y in line.points]
        parts = []
        if any(line.spread):
            edges = list(zip(line.points, line.band(), strict=True))
            upper = [(self.x(x), self.y(high)) for (x, _), (_, high) in edges]
            lower = [(self.x(x), self.y(low)) for (x, _), (low, _) in reversed(edges)]
            parts.append(
                f'<path class="band {kind}" d="{_path(upper + lower)}Z" fill="{light}" '
                'fill-opacity=".14"/>'
            )
        parts.append(
            f'<path class="line {kind}" d="{_path(places)}" fill="none" stroke="{light}" '
            f'stroke-width="1.8" stroke-linejoin="round"{dashed}>'
            f"<title>{escape(shorten(line.label))}</title></path>"
        )
        if len(places) <= _MARKED:
            parts += [
                f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{light}"/>'
                for x, y in places
            ]
        return parts


def _legend(chart: Chart, left: float) -> tuple[list[str], int]:
    """The legend, wrapped into rows, and its height."""
    parts = []
    x, y = left, float(chart.height + 8)
    for line in chart.lines:
        light, kind, dashed = _stroke(line)
        label = shorten(line.label, MAX_LABEL)
        width = 34 + _LETTER * display_width(label) + 14
        if x > left and x + width > chart.width:
            x, y = left, y + _LEGEND_LINE
        parts.append(
            f'<path class="line {kind}" d="M{x:.0f} {y:.0f}h24" '
            f'stroke="{light}" stroke-width="2.4"{dashed}/>'
            + _text(label, x + 30, y + 4, anchor="start")
        )
        x += width
    return parts, int(y - chart.height + 14)


def _stroke(line: Line) -> tuple[str, str, str]:
    """The color, the class and the dash attribute of a line."""
    light, _, dash = colors.line(line.color)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return light, f"k{line.color % len(colors.LINES)}", dashed


def _text(content: str, x: float, y: float, *, anchor: str = "middle") -> str:
    return (
        f'<text class="ink" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'fill="{colors.INK[0]}">{escape(shorten(content))}</text>'
    )


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _widened(low: float, high: float) -> tuple[float, float]:
    """The range itself, or one around a single value."""
    if high > low:
        return low, high
    return (low * 0.9, low * 1.1) if low > 0 else (low - 1, low + 1)


_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)


def linear_ticks(low: float, high: float, *, limit: int = 6) -> list[float]:
    """Round numbers inside [low, high], evenly spaced, at most `limit`."""
    if high <= low:
        return [low]
    rough = (high - low) / limit
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(scale * m for m in _ROUND if scale * m >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def log_ticks(low: float, high: float, *, limit: int = 8) -> list[float]:
    """1, 2 and 5 of every decade inside [low, high], or decades where those are too many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [m * 10.0**k for k in decades for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    if len(fine) < 3:  # less than a decade
        return [tick for tick in linear_ticks(low, high) if tick > 0]
    if len(fine) <= limit:
        return fine
    whole = [10.0**k for k in decades if low <= 10.0**k <= high]
    return whole[:: math.ceil(len(whole) / limit)]


def format_tick(value: float) -> str:
    """The label of a tick: 0.25, 40, 12k, 3.5M."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{value:.5g}"
