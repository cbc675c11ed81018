"""What a person sees while training: a bar with losses, tokens/s and the time left.

On a terminal a live bar; in a log file a line every few seconds, and nothing that overwrites.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from rich.console import Console as Terminal

    from isoglot.pretrain.hooks.record import Record

_SECONDS_BETWEEN_LINES = 15.0
_STEPS_AVERAGED = 50


class Console:
    """Shows the records of a run."""

    def __init__(self, label: str, total: int, done: int, terminal: Terminal) -> None:
        self._terminal, self._label, self._total = terminal, label, total
        self._rates: deque[tuple[float, float]] = deque(maxlen=_STEPS_AVERAGED)
        self._last_line = time.monotonic()
        self._progress: Progress | None = None
        if terminal.is_terminal:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[status]}"),
                console=terminal,
            )
            self._task = self._progress.add_task(label, total=total, completed=done, status="")
            self._progress.start()

    def write(self, record: Record) -> None:
        """Show a record of a step, or of a validation."""
        step = int(record["step"])
        if "seconds" not in record:
            self._terminal.print(f"{self._label} step {step}  {_summary(record)}", highlight=False)
            return
        self._rates.append((float(record["tokens"]), float(record["seconds"])))
        tokens, seconds = (sum(values) for values in zip(*self._rates, strict=True))
        losses = "  ".join(
            f"{name.removesuffix('/loss')} {float(value):.3f}"
            for name, value in record.items()
            if name.endswith("/loss")
        )
        status = f"{losses}  {tokens / seconds:,.0f} tokens/s"
        if self._progress is not None:
            self._progress.update(self._task, completed=step, status=status)
        elif time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES or step == self._total:
            self._last_line = time.monotonic()
            left = (self._total - step) * seconds / len(self._rates)
            self._terminal.print(
                f"{self._label} step {step}/{self._total}  {status}  {left:,.0f} s left",
                highlight=False,
            )

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._progress is not None:
            self._progress.stop()


def _summary(record: Record) -> str:
    """The mean perplexities of a validation, objective by objective."""
    means = {k: v for k, v in record.items() if k.endswith("/mean perplexity")}
    return "held out: " + ", ".join(
        f"{name.split('/')[1]} perplexity {float(value):.2f}" for name, value in means.items()
    )
