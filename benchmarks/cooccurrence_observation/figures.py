"""Figures 1 and 3 of MLM-GC (Ai and Fang, 2023): counts of word pairs, token frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isoglot.report.chart import Chart, Line, chart_svg, subplots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.cooccurrence_observation.compounds import CompoundBin
    from isoglot.types import FloatArray, LongArray


def plot_compounds(lines: Mapping[str, Sequence[CompoundBin]], *, title: str = "") -> str:
    """Differences and ratios of log counts against their sum, with 95 % intervals."""
    charts = [
        Chart(
            lines=tuple(
                Line(
                    label=label,
                    color=number,
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
    return subplots([[chart] for chart in charts])


def plot_frequencies(curves: Mapping[str, tuple[LongArray, FloatArray]]) -> str:
    """The relative frequency of each language's tokens by rank, on two logarithmic axes."""
    lines = tuple(
        Line(
            label=language,
            color=number,
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
    return chart_svg(chart)
