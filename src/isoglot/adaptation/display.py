"""One progress display over all steps of an adaptation, with the time left of the whole.

On a terminal a bar stays below everything that the steps print, and above their own bars; a log
file gets a line when a step begins or ends, and one a minute while it runs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text
from typing_extensions import override

from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

STEPS = {
    "before": "scoring before",
    "grow": "growing the vocabulary",
    "prepare": "preparing the corpus",
    "train": "training",
    "choose": "choosing layers on development pairs",
    "after": "scoring after",
    "link": "scoring entities and facts",
    "speed": "timing sentences per second",
    "export": "exporting",
    "page": "writing the page",
}
"""Name and title of each step after planning, as after `while`."""
_LINE_SECONDS = 60.0
"""Seconds between two lines of a step in a log file."""
_SURE = 0.05
"""Share of a step after which its own speed says how long it still takes."""
_NARROW = 70
"""Columns of a terminal below which there is no bar."""


class StepDisplay:
    """Shows which step runs, how much of everything is done, and how long it still takes."""

    def __init__(
        self,
        console: Console,
        steps: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`steps` has the name and the title of each step, in order."""
        self._console, self._titles, self._clock = console, dict(steps), clock
        self._expected = dict.fromkeys(steps, 0.0)
        """Seconds that each step will take, as far as that is known."""
        self._left = list(steps)
        """Steps that are not done, in order."""
        self._now: str | None = None
        self._began = self._last_line = clock()
        self._share = 0.0
        self.num_begun = 0
        """Steps that have begun: those that were done before do not."""
        self._bars = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            *([BarColumn(bar_width=24)] if console.width >= _NARROW else []),
            _Whole(self),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bars.add_task("", total=1.0)

    def __enter__(self) -> StepDisplay:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def drop(self, name: str) -> None:
        """A step will not be taken."""
        self._titles.pop(name)
        self._left.remove(name)
        del self._expected[name]

    def expect(self, name: str, seconds: float) -> None:
        """Say how long a step will take; one that was dropped is passed over."""
        if name not in self._expected:
            return
        self._expected[name] = seconds
        self._bars.update(self._task, completed=self.share_done())

    def begin(self, name: str) -> None:
        """A step begins."""
        self._now, self._share = name, 0.0
        self.num_begun += 1
        self._left = self._left[self._left.index(name) :] if name in self._left else self._left
        self._began = self._last_line = self._clock()
        steps = list(self._titles)
        # which steps will be taken is known once there is a plan with their times
        whole = f"/{len(steps)}" if any(self._expected.values()) else ""
        title = f"[{steps.index(name) + 1}{whole}] {self._titles[name]}"
        self._bars.update(self._task, description=title.replace("[", r"\["))
        if not self._console.is_terminal:
            self.say(f"{title} ...{self._when()}")

    def advance(self, share: float) -> None:
        """A share of the step that runs is done."""
        self._share = min(1.0, share)
        self._bars.update(self._task, completed=self.share_done())
        if not self._console.is_terminal and self._clock() - self._last_line >= _LINE_SECONDS:
            assert self._now is not None, "a step runs"
            self.say(f"{self._titles[self._now]}: {100 * self._share:.0f} %{self._when()}")

    def finish(self, name: str) -> None:
        """A step is done, or was done before."""
        if name in self._left:
            self._left = self._left[self._left.index(name) + 1 :]
        self._now, self._share = None, 0.0
        self._bars.update(self._task, completed=self.share_done())

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._last_line = self._clock()
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    @property
    def title(self) -> str:
        """The title of the step that runs; empty between two."""
        return "" if self._now is None else self._titles[self._now]

    def seconds_left(self) -> float | None:
        """The time until all steps are done; none while it is not known."""
        later = [self._expected[name] for name in self._left if name != self._now]
        left = sum(later)
        if self._now is not None:
            used = self._clock() - self._began
            if self._share >= _SURE:
                left += used * (1 - self._share) / self._share
            else:
                left += max(0.0, self._expected[self._now] - used)
        return left if left > 0 else None

    def share_done(self) -> float:
        """The share of the expected time of all steps that is done."""
        total = sum(self._expected.values())
        later = sum(self._expected[name] for name in self._left if name != self._now)
        now = self._expected[self._now] * (1 - self._share) if self._now is not None else 0.0
        return 1 - (later + now) / total if total else 0.0

    def _when(self) -> str:
        left = self.seconds_left()
        return "" if left is None else f" ({duration(left)} left of the whole)"


class _Whole(ProgressColumn):
    """The time left of the whole."""

    def __init__(self, display: StepDisplay) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._display = display

    @override
    def render(self, task: Task) -> Text:
        left = self._display.seconds_left()
        return Text("" if left is None else f"{duration(left)} left of the whole")
