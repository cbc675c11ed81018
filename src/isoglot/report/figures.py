"""Figures of a report's page: scores by layer, and sentences of all languages as a scatter plot.

Scores by layer are averages over languages (MetaXLM, Figures 3 and 4). The sentence map has one
color for each language (MLM-GC, Figure 2); a language is one SVG path of many dots, a tenth of the
size of as many circles.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from isoglot.report.chart import Chart, Line, chart_svg
from isoglot.report.colors import wheel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.report.leaderboard import Leaderboard
    from isoglot.visualizations import SentenceMap

_SIZE = 1000
_MARGIN = 20
_MAX_DOTS = 6000
"""Dots of a map: more cannot be told apart, and make the page large."""


def layer_figures(board: Leaderboard, colors: Mapping[str, int]) -> list[tuple[str, str]]:
    """(title, SVG) of every task that was scored at several layers; `colors` by model."""
    figures = []
    for column in board.primary_columns():
        scale = board.scales[column]
        lines = []
        for model, scores in board.scores_of(column).items():
            by_layer = sorted(scores.by_layer.items())
            if len(by_layer) > 1:
                spread = tuple(scale * (score.sd or 0.0) for _, score in by_layer)
                lines.append(
                    Line(
                        label=model,
                        color=colors[model],
                        points=tuple((layer, scale * score.mean) for layer, score in by_layer),
                        spread=spread if any(spread) else (),
                    )
                )
        if lines:
            unit = f"{column.metric}{' × 100' if scale == 100 else ''}"
            chart = Chart(
                lines=tuple(lines),
                x_label="layer (0: embeddings)",
                y_label=unit + ("" if column.higher_is_better else " (lower is better)"),
                width=580,
                height=320,
            )
            figures.append((f"{column.label}: {column.metric} by layer", chart_svg(chart)))
    return figures


def fit_square(
    places: Sequence[tuple[float, float]], size: int, margin: int
) -> tuple[float, float, float]:
    """Scale, left and top: a point is drawn at (left + scale * x, top + scale * y) in a square."""
    xs, ys = [x for x, _ in places], [y for _, y in places]
    extent = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    # one scale for both axes, because distances matter
    scale = (size - 2 * margin) / extent
    left = size / 2 - scale * (max(xs) + min(xs)) / 2
    top = size / 2 - scale * (max(ys) + min(ys)) / 2
    return scale, left, top


def sentence_map(space: SentenceMap, colors: Mapping[str, int]) -> str:
    """The scatter plot; `colors` gives a language the same color on every map of a page."""
    places = [point for points in space.points.values() for point in points]
    scale, left, top = fit_square(places, _SIZE, _MARGIN)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" role="img" '
        f'stroke-width="9" stroke-linecap="round"><title>Sentences of {len(space.points)} '
        "languages</title>"
    )
    parts = [opening]
    every = -(-len(places) // _MAX_DOTS)
    for language, points in space.points.items():
        number = colors[language]
        dots = "".join(
            f"M{left + scale * x:.0f} {top + scale * y:.0f}h0" for x, y in points[::every]
        )
        parts.append(
            f'<path class="l{number}" d="{dots}" stroke="{wheel(number, len(colors))[0]}">'
            f"<title>{escape(language)}</title></path>"
        )
    return "".join([*parts, "</svg>"])
