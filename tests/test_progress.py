"""Bars at several widths of a terminal: the time left stays; durations in words."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TimeElapsedColumn

from isoglot.progress import duration, progress_bars


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"), (0.4, "0 s"), (59.6, "1 min"), (8, "8 s"), (60, "1 min"), (125, "2 min 5 s"),
        (3599, "59 min 59 s"), (3600, "1 h"), (48_713, "13 h 31 min"), (3605, "1 h"),
        (200_000, "2 d 7 h"), (86_400 * 3 + 59, "3 d"),
    ],
)  # fmt: skip
def test_durations(seconds, said):
    assert duration(seconds) == said


def shown(width: int, *, counts: bool) -> str:
    """The last picture of a bar on a terminal of some width."""
    now = 0.0
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    bars = progress_bars(console, counts=counts)
    bars.get_time = lambda: now
    status = "mmlm 3.141  camlm 2.718  btmlm 1.414  123,456 tokens/s"
    task = bars.add_task("ernie-m, stage 1 of 2", total=100_000, status="")
    for step in range(1, 12):
        now = step * 1.0
        bars.update(task, completed=step, status=status)
    with console.capture() as said:
        console.print(bars.get_renderable())
    return said.get()


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("width", [40, 56, 80, 120, 200])
def test_the_time_left_stays_on_a_narrow_terminal(width, counts):
    picture = shown(width, counts=counts)
    (line,) = picture.splitlines()
    assert len(line) <= width
    assert re.search(r"\d+:\d\d:\d\d +left", line), line
    assert ("11/100000" if counts else "0%") in re.sub(" ", "", line)
    if width == 200:
        assert "123,456 tokens/s" in line
        assert "ernie-m, stage 1 of 2" in line


def test_the_bar_goes_first_and_then_the_time_elapsed():
    def kinds(width: int) -> set[type[ProgressColumn]]:
        bars = progress_bars(Console(file=StringIO(), width=width))
        return {type(column) for column in bars.columns if isinstance(column, ProgressColumn)}

    assert {BarColumn, TimeElapsedColumn} <= kinds(90)
    assert kinds(90) - kinds(89) == {BarColumn}
    assert kinds(70) - kinds(69) == {TimeElapsedColumn}


def test_nothing_is_drawn_in_a_log():
    assert progress_bars(Console(file=StringIO())).disable
