"""What `isoglot watch` shows of a run on a terminal: one panel, as wide as there is room.

Nothing is cut: on a narrow terminal lines are folded between their parts, and the time left is in
the first one. Several runs are side by side where each gets 56 columns.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from isoglot.progress import duration
from isoglot.report.names import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from isoglot.report.live_run import HeldoutScore, LiveRun

MIN_WIDTH = 56
"""Columns that a run needs."""
_BARS = "▁▂▃▄▅▆▇█"
_MAX_LANGUAGES = 24
"""Languages that are shown of each held-out metric: the worst changes, where there are more."""
_MAX_WARNINGS = 4
_GAP = "  "


def frame(runs: Sequence[LiveRun], width: int) -> RenderableType:
    """All runs: side by side where there is room, otherwise one below the other."""
    across = max(1, min(len(runs), width // MIN_WIDTH))
    grid = Table.grid(expand=True)
    own = width // across
    for _ in range(across):
        grid.add_column(width=own)
    for start in range(0, len(runs), across):
        grid.add_row(*(run_panel(run, own) for run in runs[start : start + across]))
    return grid


def run_panel(run: LiveRun, width: int) -> Panel:
    """One run."""
    inner = width - 4
    parts: list[RenderableType] = [_folded(_position(run), inner)]
    if run.total_steps:
        parts.append(_bar(run.step / run.total_steps, inner))
    # above the scores, which a low terminal cuts off
    parts += [_status(run), *_warnings(run)]
    if run.losses:
        parts += [Text(), _losses(run, inner)]
    for (objective, metric), scores in run.heldout.items():
        parts += [Text(), Text(f"held out: {objective} {metric}", style="bold")]
        parts.append(_folded(_scores(scores), inner))
    return Panel(Group(*parts), title=Text(shorten(run.name, inner - 4)), width=width)


def _position(run: LiveRun) -> list[Text]:
    """Step and time left first: what is folded last."""
    if not run.step:
        return [Text("no step yet")]
    of = "" if run.total_steps is None else f" of {run.total_steps:,}"
    parts = [f"step {run.step:,}{of}"]
    if run.ending() is None:
        left = run.time_left
        parts.append("time left unknown" if left is None else f"{duration(left)} left")
    parts.append(f"stage {run.stage + 1}")
    if run.speed is not None:
        parts.append(f"{run.speed:,.0f} tokens/s")
    if math.isfinite(run.learning_rate):
        parts.append(f"learning rate {run.learning_rate:.3g}")
    parts.append(f"{run.tokens:,} tokens")
    return [Text(part, style="bold" if number < 2 else "") for number, part in enumerate(parts)]


def _bar(share: float, width: int) -> Text:
    done = round(min(share, 1.0) * width)
    return Text("━" * done, style="green").append("─" * (width - done), style="dim")


def _losses(run: LiveRun, width: int) -> Table:
    """Objective, mean of its last losses, the curve over the stage."""
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold", max_width=width // 3)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    names = max((min(len(name), width // 3) for name in run.losses), default=0)
    room = max(8, width - names - 8 - 4)
    for name, curve in run.losses.items():
        recent = [value for value in run.recent[name] if math.isfinite(value)]
        shown = f"{sum(recent) / len(recent):.3f}" if recent else "not finite"
        table.add_row(shorten(name, 60), shown, Text(sparkline(curve.points, room), style="cyan"))
    return table


def sparkline(values: Sequence[float], width: int) -> str:
    """A curve in one line: at most `width` bars, each the mean of its values."""
    count = min(width, len(values))
    if not count:
        return ""
    edges = [len(values) * number // count for number in range(count + 1)]
    means = [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((mean - low) * scale)] for mean in means)


def _scores(scores: Sequence[HeldoutScore]) -> list[Text]:
    """The mean, then the languages; of many, those that changed for the worse the most."""
    means = [score for score in scores if score.language == "mean"]
    others = [score for score in scores if score.language != "mean"]
    left_out = len(others) - _MAX_LANGUAGES
    if left_out > 0:
        others = sorted(others, key=_loss_of)[-_MAX_LANGUAGES:]
        others.sort(key=lambda score: score.language)
    styles = {True: "green", False: "red", None: ""}
    parts = [
        Text(shorten(score.describe(), 60), style=styles[score.is_better])
        for score in (*means, *others)
    ]
    return [*parts, Text(f"and {left_out} more", style="dim")] if left_out > 0 else parts


def _loss_of(score: HeldoutScore) -> float:
    """How much worse a language has got; negative if it has got better."""
    return 0.0 if score.is_better is None else abs(score.change or 0) * (-1) ** score.is_better


def _warnings(run: LiveRun) -> list[RenderableType]:
    found = list(run.warnings[-_MAX_WARNINGS:])
    if run.skipped:
        found.insert(0, f"{run.skipped} updates were skipped: a number was not finite.")
    if run.reader.damaged:
        found.append(
            f"{len(run.reader.damaged)} lines of {run.reader.file} are not records of a run."
        )
    if not found:
        return []
    return [Text(f"warning: {shorten(text, 400)}", style="yellow") for text in found]


def _status(run: LiveRun) -> Text:
    return Text(status(run), style="bold" if run.ending() is not None else "dim")


def status(run: LiveRun) -> str:
    """Whether the run waits, runs, is quiet, or how it ended."""
    ending = run.ending()
    if ending is not None:
        return ending
    if not run.step:
        return f"waiting for the first record in {run.reader.file}"
    quiet = run.quiet_for()
    if quiet is None:
        return "running"
    return (
        f"no record for {duration(quiet)}: the run validates, saves or exports, or it has ended "
        "without a word; its log says more"
    )


def _folded(parts: Iterable[Text], width: int) -> Text:
    """Parts with gaps between them, folded where a line is full."""
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + len(_GAP) + part.cell_len <= width:
            lines[-1].append(_GAP).append_text(part)
        else:
            lines.append(Text().append_text(part))
    return Text("\n").join(lines)
