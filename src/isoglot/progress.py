"""Progress bars that fit the terminal, and durations in hours and minutes.

On a narrow terminal the bar goes first, then the time elapsed; losses are cut with an ellipsis. How
much is done and the time left stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Column
from rich.text import Text
from typing_extensions import override

if TYPE_CHECKING:
    from rich.console import Console

_BAR, _ELAPSED = 90, 70
"""Columns of a terminal from which on the bar, and the time elapsed, are shown."""
_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


class _Cut(ProgressColumn):
    """A text that gives its room to the other columns, cut with an ellipsis."""

    def __init__(self, field: str) -> None:
        super().__init__(table_column=Column(overflow="ellipsis"))
        self._field = field

    @override
    def render(self, task: Task) -> Text:
        text = task.description if self._field == "description" else task.fields.get(self._field)
        return Text(text or "", no_wrap=True, overflow="ellipsis")


def progress_bars(
    console: Console, *, counts: bool = False, size: bool = False, time_left: bool = True
) -> Progress:
    """Bars for tasks with an optional field `status`, as wide as the terminal allows.

    With `counts` they show steps done of all steps, with `size` bytes of all bytes and bytes a
    second, otherwise percent. Without `time_left` they show none: they are a part of something
    that shows its own.
    """
    columns: list[ProgressColumn] = [_Cut("description")]
    if console.width >= _BAR:
        columns.append(BarColumn(bar_width=24))
    percent = TaskProgressColumn("[progress.percentage]{task.percentage:>3.0f} %")
    steps = MofNCompleteColumn(table_column=Column(no_wrap=True))
    columns.append(steps if counts else DownloadColumn() if size else percent)
    if size and console.width >= _BAR:
        columns.append(TransferSpeedColumn())
    if console.width >= _ELAPSED:
        columns.append(TimeElapsedColumn())
    if time_left:
        remaining = TimeRemainingColumn(table_column=Column(no_wrap=True))
        columns += [remaining, TextColumn("left")]
    columns.append(_Cut("status"))
    return Progress(*columns, console=console, disable=not console.is_terminal)


def duration(seconds: float) -> str:
    """A time in its two largest units: `13 h 31 min`, `2 min 5 s`, `8 s`."""
    left = round(seconds)
    parts: list[str] = []
    for name, size in _UNITS:
        number, rest = divmod(left, size)
        if parts or number or name == "s":
            left = rest
            parts.append(f"{number} {name}" if number or not parts else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)
