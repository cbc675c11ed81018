"""What the commands print: tables on standard output, progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.progress import TaskID

Row = Sequence[str]
_PIPE_WIDTH = 200


def print_table(headings: Row, rows: Iterable[Row], *, markdown: bool = False) -> None:
    """Print a table to standard output: aligned columns, or Markdown."""
    if markdown:
        lines = [headings, ["---"] * len(headings), *rows]
        print("\n".join(f"| {' | '.join(line)} |" for line in lines))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    # a file or a pipe has no width to fold lines at
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)


def describe_counts(counts: Mapping[str, int]) -> str:
    """Numbers with their names: `3 too long, 1,000 empty`."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())


def write_file(file: Path, text: str) -> None:
    """Write a text file, in a folder that may not exist."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def write_page(file: Path, text: str) -> None:
    """Write a text file, and print its path and size."""
    write_file(file, text)
    print(f"{file} ({len(text.encode()) / 1e6:.1f} MB)")


def disable_progress_bars() -> None:
    """Turn off transformers' own progress bars."""
    from transformers.utils import logging

    logging.disable_progress_bar()


class StageProgress:
    """Progress by stage: one bar for each stage on a terminal, one line for each in a log."""

    def __init__(self, console: Console | None = None) -> None:
        """On standard error unless a terminal is given."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = console = console or Console(stderr=True)
        self._tasks: dict[str, TaskID] = {}
        self._bars = Progress(
            TextColumn("{task.description:<28}"),
            BarColumn(bar_width=32),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> StageProgress:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report that `done` of `total` units of a stage are finished."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
            if not self._console.is_terminal:
                self._console.print(f"{stage} ...", highlight=False)
        self._bars.update(self._tasks[stage], completed=done, total=total)
