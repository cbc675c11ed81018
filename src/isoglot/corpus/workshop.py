"""Where the stages of preparing do their work, by how many workers, and who is told of it.

What a stage has finished is recorded in the work folder, so that a run that was interrupted goes on
where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from isoglot.corpus.engine import LOCAL, run
from isoglot.corpus.finished import Finished
from isoglot.corpus.times import Times

if TYPE_CHECKING:
    from collections.abc import Sequence

Task = TypeVar("Task")
Result = TypeVar("Result")
Recorded = tuple[type[Result], Callable[[Task, Result], bool], Callable[[Task], object]]
"""The class of results, whether the files of one are whole, and where a task writes them."""


class Progress(Protocol):
    """Told how far a stage is; `total` is None where it is not known."""

    def __call__(self, stage: str, done: int, total: int | None, /) -> None:
        """`done` of `total` bytes (or steps) of this stage are done."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Progress nobody asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Where the work is done, by how many, and who is told."""

    work: Path
    workers: int
    cluster: str
    report: Progress
    times: Times

    def run(
        self,
        stage: str,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        *,
        name: Callable[[Task], str],
        sizes: Sequence[int],
        recorded: Recorded[Result, Task] | None,
        little: bool = False,
    ) -> list[Result]:
        """All tasks of a stage; those that are `recorded` are not done again.

        `little` work is done here: starting workers would take longer.
        """
        with self.times.of(stage):
            return run(
                function,
                tasks,
                workers=1 if little else self.workers,
                cluster=LOCAL if little else self.cluster,
                name=name,
                sizes=sizes,
                done=None if recorded is None else Finished(self.work / "finished", *recorded),
                progress=lambda done, total: self.report(stage, done, total),
            )
