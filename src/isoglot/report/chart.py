"""Line charts as SVG, written by hand: small, sharp at any size, and at home in both themes.

Every mark has its colour as an attribute, so that the SVG alone is a figure for a paper, and a
class (`k0`, `grid`, ...), so that a page's style sheet can give it the colours of a dark theme.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from isoglot.report import colours
from isoglot.report.ticks import linear_ticks, log_ticks, written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_RIGHT, _TOP, _BOTTOM = 22, 14, 44
_LEGEND_LINE = 19
_LETTER = 6.6
"""Width of a letter of 12 pixels, on average: legends are laid out without a font's measures."""
_MARKED = 30
"""Lines of at most so many points show them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart."""

    label: str
    colour: int
    """Number of its colour: the same for the same model in every chart of a page."""
    points: tuple[tuple[float, float], ...]
    spread: tuple[float, ...] = ()
    """Half the height of the band around each point; none where there is one repetition."""


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
    whole: bool = True
    """Does the horizontal axis count something (steps, tokens, layers)?"""


def svg(chart: Chart) -> str:
    """The chart as one `<svg>` element."""
    frame = _Frame(chart)
    legend, legend_height = _legend(chart, frame.left)
    total = chart.height + legend_height
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {chart.width} {total}" '
        f'width="{chart.width}" height="{total}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">'
    )
    parts = [
        opening,
        f"<title>{escape(chart.title or f'{chart.y_label} against {chart.x_label}')}</title>",
        f'<rect class="paper" width="{chart.width}" height="{total}" fill="{colours.PAPER[0]}"/>',
    ]
    if chart.title:
        parts.append(
            f'<text class="ink" x="{frame.left}" y="22" font-size="14" font-weight="600" '
            f'fill="{colours.INK[0]}">{escape(chart.title)}</text>'
        )
    parts += frame.axes()
    for line in chart.lines:
        parts += frame.line(line)
    return "\n".join([*parts, *legend, "</svg>"])


class _Frame:
    """The plot's rectangle, and where numbers lie in it."""

    def __init__(self, chart: Chart) -> None:
        self._chart = chart
        xs = [x for line in chart.lines for x, _ in line.points]
        self._x_range = _widened(min(xs), max(xs))
        self._y_range = self._y_extent()
        ticks_of: Callable[[float, float], list[float]]
        ticks_of = log_ticks if chart.log else linear_ticks
        self._y_ticks = ticks_of(*self._y_range)
        longest = max((len(written(tick)) for tick in self._y_ticks), default=0)
        self.left = round(30 + _LETTER * longest + 8)
        self._right = chart.width - _RIGHT
        self._top, self._bottom = _TOP + (22 if chart.title else 0), chart.height - _BOTTOM

    def _y_extent(self) -> tuple[float, float]:
        lows, highs = [], []
        for line in self._chart.lines:
            for (_, y), half in zip(line.points, _halves(line), strict=True):
                lows.append(y if self._chart.log and y <= half else y - half)
                highs.append(y + half)
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
        """Grid lines, ticks and the two axes' names."""
        parts = []
        for tick in self._y_ticks:
            y = self.y(tick)
            parts.append(
                f'<path class="grid" d="M{self.left} {y:.1f}H{self._right}" stroke="#dde2e7"/>'
            )
            parts.append(_text(written(tick), self.left - 8, y + 4, anchor="end"))
        parts += [
            _text(written(tick), self.x(tick), self._bottom + 18)
            for tick in linear_ticks(*self._x_range, most=8)
            if tick.is_integer() or not self._chart.whole
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
        """One line, with its band and its points."""
        light, _, dash = colours.line(line.colour)
        kind = f"k{line.colour % len(colours.LINES)}"
        places = [(self.x(x), self.y(y)) for x, y in line.points]
        parts = []
        if any(line.spread):
            edges = list(zip(line.points, line.spread, strict=True))
            upper = [(self.x(x), self.y(y + half)) for (x, y), half in edges]
            lower = [(self.x(x), self.y(y - half)) for (x, y), half in reversed(edges)]
            parts.append(
                f'<path class="band {kind}" d="{_path(upper + lower)}Z" fill="{light}" '
                'fill-opacity=".14"/>'
            )
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(
            f'<path class="line {kind}" d="{_path(places)}" fill="none" stroke="{light}" '
            f'stroke-width="1.8" stroke-linejoin="round"{dashed}>'
            f"<title>{escape(line.label)}</title></path>"
        )
        if len(places) <= _MARKED:
            parts += [
                f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{light}"/>'
                for x, y in places
            ]
        return parts


def _legend(chart: Chart, left: float) -> tuple[list[str], int]:
    """A name for every line, in as many rows as they need, and the rows' height."""
    parts = []
    x, y = left, float(chart.height + 8)
    for line in chart.lines:
        light, _, dash = colours.line(line.colour)
        width = 34 + _LETTER * len(line.label) + 14
        if x > left and x + width > chart.width:
            x, y = left, y + _LEGEND_LINE
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(
            f'<path class="line k{line.colour % len(colours.LINES)}" d="M{x:.0f} {y:.0f}h24" '
            f'stroke="{light}" stroke-width="2.4"{dashed}/>'
            + _text(line.label, x + 30, y + 4, anchor="start")
        )
        x += width
    return parts, int(y - chart.height + 14)


def _halves(line: Line) -> tuple[float, ...]:
    return line.spread or (0.0,) * len(line.points)


def _text(content: str, x: float, y: float, *, anchor: str = "middle") -> str:
    return (
        f'<text class="ink" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'fill="{colours.INK[0]}">{escape(content)}</text>'
    )


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _widened(low: float, high: float) -> tuple[float, float]:
    """The range itself, or one around a lone value."""
    if high > low:
        return low, high
    return (low * 0.9, low * 1.1) if low > 0 else (low - 1, low + 1)
