"""One bar for every run of the demo, fed from their processes through a queue."""

from __future__ import annotations

import multiprocessing
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console


@contextmanager
def bars_of(terminal: Console, names: list[str]) -> Iterator[Any]:
    """A bar for every run; yields the queue that runs tell their progress to."""
    manager = multiprocessing.get_context("spawn").Manager()
    told = manager.Queue()
    bars = Progress(
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[losses]}"),
        console=terminal,
        disable=not terminal.is_terminal,
    )
    tasks = {name: bars.add_task(name, total=1, losses="", start=False) for name in names}
    show = _shower(terminal, bars, tasks)
    listener = Thread(target=_relay, args=(told, show), daemon=True)
    listener.start()
    with bars:
        try:
            yield told
        finally:
            told.put(None)
            listener.join(timeout=5)
            manager.shutdown()


def _relay(told: Any, show: Callable[[str, float, dict[str, float]], None]) -> None:
    while (news := told.get()) is not None:
        show(*news)


def _shower(
    terminal: Console, bars: Progress, tasks: dict[str, Any]
) -> Callable[[str, float, dict[str, float]], None]:
    quarters: dict[str, int] = {}

    def show(name: str, share: float, losses: dict[str, float]) -> None:
        text = "  ".join(f"{objective} {loss:.2f}" for objective, loss in losses.items())
        bars.start_task(tasks[name])
        bars.update(tasks[name], completed=share, losses=text)
        # a log file gets a line at each quarter instead
        if not terminal.is_terminal and int(4 * share) > quarters.get(name, 0):
            quarters[name] = int(4 * share)
            terminal.print(f"{name:<18} {100 * share:3.0f} %  {text}", highlight=False)

    return show
