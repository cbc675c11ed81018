"""Several charts as one figure: rows of panels beside each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isoglot.report import colours
from isoglot.report.chart import svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.report.chart import Chart

_HEIGHT = re.compile(r' height="(\d+)"')


def panels(rows: Sequence[Sequence[Chart]]) -> str:
    """The charts of each row from left to right, as one `<svg>` element."""
    parts: list[str] = []
    width = y = 0
    for row in rows:
        x, lowest = 0, 0
        for chart in row:
            drawn = svg(chart)
            height = _HEIGHT.search(drawn)
            assert height is not None, "a chart says how high it is with its legend"
            parts.append(drawn.replace("<svg ", f'<svg x="{x}" y="{y}" ', 1))
            x, lowest = x + chart.width, max(lowest, int(height[1]))
        width, y = max(width, x), y + lowest
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" '
        f'height="{y}">'
    )
    paper = f'<rect class="paper" width="{width}" height="{y}" fill="{colours.PAPER[0]}"/>'
    return "\n".join([opening, paper, *parts, "</svg>"])
