"""The table of levers from the results of all cells: mean ± standard deviation over seeds.

Losses are means over languages of the held-out loss at 15 % of the tokens, which are the same ones
for all arms. At equal tokens, the loss is read between two validations (linearly in the tokens) at
the tokens of the shortest cell: there, the learning rate of longer cells has not reached its end.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from benchmarks.levers.arms import ALL, BASELINE, LEVERS

Cell = dict[str, Any]


def curve(cell: Cell) -> list[tuple[float, float]]:
    """(tokens, mean loss over languages) of each validation of a cell."""
    return [(point["tokens"], fmean(point["losses"].values())) for point in cell["points"]]


def loss_at(cell: Cell, tokens: float) -> float:
    """The loss after so many tokens, between two validations."""
    points = curve(cell)
    for (before, high), (after, low) in pairwise(points):
        if before <= tokens <= after:
            return high + (low - high) * (tokens - before) / max(1, after - before)
    return points[0][1] if tokens < points[0][0] else points[-1][1]


def tokens_to(cell: Cell, loss: float) -> float | None:
    """The tokens after which a loss is first reached; none: it is not."""
    points = curve(cell)
    if points[0][1] <= loss:
        return points[0][0]
    for (before, high), (after, low) in pairwise(points):
        if low <= loss:
            return before + (after - before) * (high - loss) / max(1e-9, high - low)
    return None


def table(cells: dict[str, Cell]) -> str:
    """A Markdown table of all arms that have cells."""
    by_arm: dict[str, dict[int, Cell]] = defaultdict(dict)
    for cell in cells.values():
        by_arm[cell["arm"]][cell["seed"]] = cell
    base = by_arm.get(BASELINE, {})
    if not base:
        return "No cell of the baseline has been run yet.\n"
    shortest = min(curve(cell)[-1][0] for cell in cells.values())
    order = [BASELINE, *LEVERS, ALL]
    arms = sorted(by_arm, key=lambda arm: (order.index(arm) if arm in order else len(order), arm))
    seconds = next(iter(base.values()))["gpu_seconds"]
    lines = [
        _row(
            "arm",
            "seeds",
            "tokens, M",
            f"perplexity at {seconds:g} GPU s",
            "loss less the baseline's",
            f"perplexity at {shortest / 1e6:.0f}M tokens",
            "tokens to the baseline's loss, share",
        ),
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for arm in arms:
        own = by_arm[arm]
        final = [curve(cell)[-1][1] for cell in own.values()]
        paired = [
            curve(cell)[-1][1] - curve(base[seed])[-1][1]
            for seed, cell in own.items()
            if seed in base
        ]
        reached = [
            _share(tokens_to(cell, curve(base[seed])[-1][1]), curve(base[seed])[-1][0])
            for seed, cell in own.items()
            if seed in base
        ]
        row = [
            arm,
            str(len(own)),
            f"{fmean(cell['tokens'] for cell in own.values()) / 1e6:.1f}",
            spread([math.exp(loss) for loss in final]),
            spread(paired, 3) if arm != BASELINE and paired else "",
            spread([math.exp(loss_at(cell, shortest)) for cell in own.values()]),
            _reached(reached),
        ]
        lines.append(_row(*row))
    return "\n".join(lines) + "\n"


def spread(values: list[float], digits: int = 2) -> str:
    """Mean ± standard deviation."""
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{deviation}"


def _row(*entries: str) -> str:
    return f"| {' | '.join(entries)} |"


def _share(tokens: float | None, of: float) -> float | None:
    return None if tokens is None else tokens / of


def _reached(shares: list[float | None]) -> str:
    found = [one for one in shares if one is not None]
    if not shares:
        return ""
    missed = (
        f" ({len(shares) - len(found)} of {len(shares)} not)" if len(found) < len(shares) else ""
    )
    return (spread(found) if found else "not reached") + (missed if found else "")
