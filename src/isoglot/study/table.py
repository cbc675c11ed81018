"""A study as a Markdown table and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from isoglot.evaluate.bootstrap import FEWEST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.evaluate.averages import Average
    from isoglot.study.compare import Row

_LEAST_P = 0.001


def markdown(rows: Sequence[Row]) -> str:
    """A line a recipe: each task, the mean over tasks, and the difference from the first line."""
    tasks = list(dict.fromkeys(task for row in rows for task in row.tasks))
    headings = ["recipe", *tasks, "mean", "against the first (95 %)", "p", "seeds"]
    lines = [headings, ["---"] * len(headings)]
    for row in rows:
        found = [row.tasks.get(task) for task in tasks]
        lines.append(
            [
                row.name,
                *("" if average is None else _cell(average) for average in found),
                _percent(row.mean, row.sd),
                *_difference(row),
                str(row.seeds),
            ]
        )
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n{_legend(rows)}\n"


def write_study(rows: Sequence[Row], folder: Path) -> None:
    """study.md and study.json in a folder."""
    (folder / "study.md").write_text(markdown(rows), encoding="utf-8")
    content = {"schema": 1, "rows": [asdict(row) for row in rows]}
    (folder / "study.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8"
    )


def _cell(average: Average) -> str:
    gap = "" if average.gap is None else f" (gap {100 * average.gap:.1f})"
    return _percent(average.mean, average.sd) + gap


def _percent(value: float, sd: float | None) -> str:
    return f"{100 * value:.1f}" + ("" if sd is None else f" ± {100 * sd:.1f}")


def _difference(row: Row) -> tuple[str, str]:
    found = row.against_first
    if found is None:
        return "", ""
    if found.low is None or found.high is None or found.p is None:
        return f"{100 * found.mean:+.1f}", "–"
    interval = f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"
    p = "< 0.001" if found.p < _LEAST_P else f"{found.p:.3f}"
    return f"{100 * found.mean:+.1f} ({interval})", p


def _legend(rows: Sequence[Row]) -> str:
    ways = {task: average for row in rows for task, average in row.tasks.items()}
    named = ", ".join(f"{task}: {_way(average)}" for task, average in ways.items())
    return (
        f"In percent, mean ± sd over seeds of the mean over languages ({named}). A layer is the "
        "same in all rows, the one that is best on average over them. The gap is the source "
        "language's score less the mean of the others. Differences of the means: paired bootstrap "
        "over seeds and, within tasks, languages, not over test examples; no interval and no p (–) "
        f"from fewer than {FEWEST} pairs of scores."
    )


def _way(average: Average) -> str:
    return average.metric + ("" if average.layer is None else f" at layer {average.layer}")
