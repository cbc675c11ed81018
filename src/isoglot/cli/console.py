"""What the commands print: tables on standard output, progress on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isoglot.atomic import write_text
from isoglot.locks import lock_file

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.progress import TaskID

Row = Sequence[str]
_PIPE_WIDTH = 200
_LINE_SECONDS = 15.0
"""Seconds between two lines of a stage in a log, as in pre-training."""
_QUIET_SECONDS = 30.0
"""Seconds without news of a stage after which a log gets a line all the same."""
_MANY = 10**7
"""Numbers from this on are shown in millions."""


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
    """Write a text file, in a folder that may not exist; two commands take turns."""
    with lock_file(file, wait=True):
        write_text(file, text)


def write_page(file: Path, text: str) -> None:
    """Write a text file, and print its path and size."""
    write_file(file, text)
    print(f"{file} ({len(text.encode()) / 1e6:.1f} MB)")


_INTERRUPTED = 130
"""What shells give as the exit code of a command that Ctrl-C has stopped."""


@contextmanager
def ctrl_c_says(sentence: str) -> Iterator[None]:
    """End a command that Ctrl-C stops with a sentence on what is kept."""
    import typer

    try:
        yield
    except KeyboardInterrupt:
        print(f"stopped: {sentence}", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None


def disable_progress_bars() -> None:
    """Turn off transformers' own progress bars."""
    from transformers.utils import logging

    logging.disable_progress_bar()


class StageProgress:
    """Progress by stage: a bar for each stage on a terminal; in a log, a line every 15 seconds.

    A task that takes long gives no news meanwhile: the log gets a line every 30 seconds then.
    """

    def __init__(
        self,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        size: bool = False,
    ) -> None:
        """On standard error unless a terminal is given; `clock` gives seconds.

        With `size` the units are bytes, shown as sizes and speed.
        """
        from rich.console import Console

        from isoglot.progress import progress_bars

        self._console = console = console or Console(stderr=True)
        self._tasks: dict[str, TaskID] = {}
        self._clock = clock
        self._started: dict[str, tuple[float, int]] = {}
        self._done: dict[str, int] = {}
        self._last_line = clock()
        self._current: tuple[str, int, int | None] | None = None
        self._lock, self._over = threading.RLock(), threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._bars = progress_bars(console, size=size)
        self._unit, self._scale = (" MB", 10**6) if size else ("", 1)

    def __enter__(self) -> StageProgress:
        self._bars.start()
        if not self._console.is_terminal:
            self._watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._bars.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report that `done` of `total` units of a stage are finished."""
        with self._lock:
            # a study reports the same stage for each of its runs
            begins = stage not in self._tasks or done < self._done[stage]
            self._done[stage] = done
            if begins:
                if stage not in self._tasks:
                    self._tasks[stage] = self._bars.add_task(stage, total=total)
                self._started[stage] = self._clock(), done
                if not self._console.is_terminal:
                    self._print(f"{stage} ...")
            elif not self._console.is_terminal and self._since_line() >= _LINE_SECONDS:
                self._print(f"{stage}: {self._status(stage, done, total)}")
            self._bars.update(self._tasks[stage], completed=done, total=total)
            self._current = (stage, done, total)

    def _watch(self) -> None:
        while not self._over.wait(1.0):
            self.remind()

    def remind(self) -> None:
        """Print how far the present stage is, if the log has had no line for a while."""
        with self._lock:
            if self._current is None or self._since_line() < _QUIET_SECONDS:
                return
            stage, done, total = self._current
            if done != total:
                self._print(f"{stage}: {self._status(stage, done, total)}")

    def _since_line(self) -> float:
        return self._clock() - self._last_line

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)
        self._last_line = self._clock()

    def _status(self, stage: str, done: int, total: int | None) -> str:
        """How far a stage is, its speed until now and the time left at that speed."""
        from isoglot.progress import duration

        started, before = self._started[stage]
        seconds = self._clock() - started
        of = f"{self._shown(done)}{'' if total else self._unit}"
        if total:
            of += f" of {self._shown(total)}{self._unit} ({100 * done / total:.0f} %)"
        if done <= before:
            return f"{of}, {duration(seconds)} so far"
        rate = (done - before) / max(seconds, 1e-9)
        left = f", {duration((total - done) / rate)} left" if total else ""
        return f"{of}, {self._shown(rate, exact=False)}{self._unit}/s{left}"

    def _shown(self, number: float, *, exact: bool = True) -> str:
        """A number of units; from ten million on in millions. Speeds below ten have two digits."""
        number /= self._scale
        if number >= _MANY:
            return f"{number / 1e6:,.0f} M"
        return (
            f"{int(number):,}" if exact else f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
        )
