"""Scores by layer, averaged over languages: MetaXLM's Figures 3 (retrieval) and 4 (AER)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.report.chart import Chart, Line, svg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.report.board import Board


def layer_figures(board: Board, colours: Mapping[str, int]) -> list[tuple[str, str]]:
    """(title, SVG) for every task that was scored at several layers; `colours` by model."""
    figures = []
    for column in board.primary():
        scale = board.scales[column]
        lines = []
        for model, entry in board.of(column).items():
            cells = sorted(entry.layers.items())
            if len(cells) > 1:
                spread = tuple(scale * (cell.sd or 0.0) for _, cell in cells)
                lines.append(
                    Line(
                        label=model,
                        colour=colours[model],
                        points=tuple((layer, scale * cell.mean) for layer, cell in cells),
                        spread=spread if any(spread) else (),
                    )
                )
        if lines:
            unit = f"{column.metric}{' × 100' if scale == 100 else ''}"
            better = "" if column.higher_is_better else " (lower is better)"
            chart = Chart(
                lines=tuple(lines),
                x_label="layer (0: embeddings)",
                y_label=unit + better,
                width=580,
                height=320,
            )
            figures.append((f"{column.label}: {column.metric} by layer", svg(chart)))
    return figures
