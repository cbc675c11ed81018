"""Figures of co-occurrence as SVG: compounds and their translations, frequencies of tokens.

MLM-GC (Ai and Fang, 2023), Figures 1 and 3.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from isoglot.report.chart import Chart, Line, svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.corpus.cooccurrence.observation import Bin
    from isoglot.types import FloatArray, LongArray

_SIZE = re.compile(r'<svg [^>]*width="(\d+)" height="(\d+)"')


def draw_compounds(lines: Mapping[str, Sequence[Bin]], *, title: str = "") -> str:
    """Differences above, ratios below, against the sum of logs, each in its 95 % interval."""
    charts = [
        Chart(
            lines=tuple(
                Line(
                    label=label,
                    colour=number,
                    points=tuple(((b.low + b.high) / 2, getattr(b, what)) for b in bins),
                    spread=tuple(getattr(b, f"{what}_half") for b in bins),
                )
                for number, (label, bins) in enumerate(lines.items())
            ),
            x_label="log a + log b",
            y_label=y_label,
            title=heading,
            height=320,
        )
        for what, y_label, heading in (
            ("difference", "|log a - log b|", title),
            ("ratio", "|log a - log b| / (log a + log b)", ""),
        )
    ]
    return stacked([svg(chart) for chart in charts])


def draw_frequencies(curves: Mapping[str, tuple[LongArray, FloatArray]]) -> str:
    """The share of each language's text that its tokens have, by rank, on two logarithmic axes."""
    lines = tuple(
        Line(
            label=language,
            colour=number,
            points=tuple(zip(np.log10(ranks).tolist(), shares.tolist(), strict=True)),
        )
        for number, (language, (ranks, shares)) in enumerate(curves.items())
    )
    chart = Chart(
        lines=lines,
        x_label="rank of the token, as a power of ten",
        y_label="share of the text",
        log=True,
    )
    return svg(chart)


def stacked(figures: Sequence[str]) -> str:
    """Figures of one width, one above the other, as one."""
    parts, height, width = [], 0, 0
    for figure in figures:
        size = _SIZE.match(figure)
        assert size is not None
        parts.append(figure.replace("<svg ", f'<svg y="{height}" ', 1))
        width, height = max(width, int(size[1])), height + int(size[2])
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">'
    )
    return "\n".join([opening, *parts, "</svg>"])
