"""Progress of the verbs that prepare or score: bars on a terminal, a line per stage in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console


def without_bars_of_others() -> None:
    """Keep transformers' own progress bars off the terminal."""
    from transformers.utils import logging

    logging.disable_progress_bar()


class Stages:
    """One bar a stage, made when the stage is first heard of."""

    def __init__(self, terminal: Console) -> None:
        self._terminal = terminal
        self._tasks: dict[str, TaskID] = {}
        self._bars = Progress(
            TextColumn("{task.description:<28}"),
            BarColumn(bar_width=32),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            console=terminal,
            disable=not terminal.is_terminal,
        )

    def __enter__(self) -> Stages:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """`done` of `total` of a stage are done."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
            if not self._terminal.is_terminal:
                self._terminal.print(f"{stage} ...", highlight=False)
        self._bars.update(self._tasks[stage], completed=done, total=total)
