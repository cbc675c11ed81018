"""Forest plots as SVG: differences with their intervals, one row each, over a common axis.

Colors, ticks and classes are those of `isoglot.report.chart`, so that the style sheet of a page
sets the colors of a dark theme. A label stands above its row: on a phone it stays readable.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from isoglot.report import colors
from isoglot.report.chart import format_tick, linear_ticks
from isoglot.report.names import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, ROW, EDGE, FOOT = 400, 32, 16, 30
FOR, NEITHER, AGAINST = 2, 8, 6
"""Numbers of colors: green, gray, red."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A difference with its interval."""

    label: str
    mean: float
    interval: tuple[float, float]
    sign: int
    """1: it counts for the claim; -1: against it; 0: neither."""


def forest_svg(rows: Sequence[Row], title: str) -> str:
    """The rows as one `<svg>` element; a vertical line is at 0."""
    ends = [end for row in rows for end in row.interval]
    low, high = min(0.0, *ends), max(0.0, *ends)
    scale = (WIDTH - 2 * EDGE) / ((high - low) or 1.0)

    def x(value: float) -> float:
        return EDGE + (value - low) * scale

    bottom = ROW * len(rows) + 6
    height = bottom + FOOT
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect class="paper" width="{WIDTH}" height="{height}" fill="{colors.PAPER[0]}"/>',
    ]
    for tick in linear_ticks(low, high, limit=5):
        parts += [
            f'<path class="grid" d="M{x(tick):.1f} 0V{bottom}" stroke="#dde2e7"/>',
            _text(format_tick(tick), x(tick), bottom + 17, anchor="middle"),
        ]
    parts.append(
        f'<path class="axis" d="M{x(0):.1f} 0V{bottom}" stroke="#8a939d" stroke-width="1.5"/>'
    )
    for number, row in enumerate(rows):
        parts += _row(row, ROW * number + 13, [x(end) for end in row.interval], x(row.mean))
    return "\n".join([*parts, "</svg>"])


def _row(row: Row, y: float, ends: Sequence[float], middle: float) -> list[str]:
    """A label, the interval as a line and the mean as a dot, filled if it counts."""
    number = FOR if row.sign > 0 else AGAINST if row.sign < 0 else NEITHER
    light = colors.LINES[number][0]
    told = f"{row.label}: {row.mean:+.2f} [{row.interval[0]:+.2f}, {row.interval[1]:+.2f}]"
    below = y + 11
    fill = f'class="dot k{number}" fill="{light}"' if row.sign else 'class="hollow" fill="none"'
    left, right = (f"M{end:.1f} {below - 4}v8" for end in ends)
    return [
        _text(row.label, EDGE, y, anchor="start"),
        f'<g class="line k{number}" stroke="{light}" stroke-width="2">',
        f"<title>{escape(told)}</title>",
        f'<path d="M{ends[0]:.1f} {below}H{ends[1]:.1f}{left}{right}"/>',
        f'<circle {fill} cx="{middle:.1f}" cy="{below}" r="3.6"/></g>',
    ]


def _text(content: str, x: float, y: float, *, anchor: str) -> str:
    return (
        f'<text class="ink" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'fill="{colors.INK[0]}">{escape(shorten(content, 58))}</text>'
    )
