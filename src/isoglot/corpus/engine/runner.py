"""Resumable tasks: one function applied to many tasks, in parallel, skipping finished ones.

    runner = StageRunner(work=folder, workers=4, progress=report)
    cache = runner.cache(Result, is_complete, output=attrgetter("file"))
    results = runner.run("encode", function, tasks, sizes=bytes_of_each, cache=cache)

A task is a dataclass that holds everything its function reads, so neither the number of workers nor
the machine changes what is written. Tasks run in this process, in threads, in spawned processes or
on a Ray cluster (`workers`, `cluster`), the largest first. With a `TaskCache`, an
interrupted stage continues where it stopped.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import cattrs

from isoglot import __version__, json_text
from isoglot.atomic import write_errors, write_json
from isoglot.corpus.engine.cluster import connected, run_on_cluster
from isoglot.corpus.engine.workers import run_in_processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Task = TypeVar("Task")
Result = TypeVar("Result")
Pool = Literal["processes", "threads"]

LOCAL = "local"
"""The `cluster` setting that means this machine."""


class Progress(Protocol):
    """Called as a stage advances; `total` is None where it is unknown."""

    def __call__(self, stage: str, done: int, total: int | None, /) -> None:
        """`done` of `total` bytes (or tasks) of the stage are finished."""


def no_progress(stage: str, done: int, total: int | None) -> None:
    """A `Progress` that reports nothing."""


@dataclass(slots=True)
class Timings:
    """Seconds of work, for people to read; never written into a corpus."""

    stages: dict[str, float] = field(default_factory=dict)
    """Stage -> elapsed seconds."""
    folders: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Folder of a source's language -> seconds of work on it, summed over workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRunner:
    """Runs the stages of one job: where, with how many workers, and who hears of the progress."""

    work: Path
    """Folder of unfinished work; records of finished tasks go to `work/finished`."""
    workers: int = 1
    cluster: str = LOCAL
    """`local`, `auto` (the Ray cluster this machine belongs to) or `ray://host:port`."""
    progress: Progress = no_progress
    timings: Timings = field(default_factory=Timings)

    def cache(
        self,
        result_type: type[Result],
        is_complete: Callable[[Task, Result], bool],
        output: Callable[[Task], object],
    ) -> TaskCache[Task, Result]:
        """A `TaskCache` in the work folder."""
        return TaskCache(self.work / "finished", result_type, is_complete, output)

    def run(
        self,
        stage: str,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        *,
        name: Callable[[Task], str] = str,
        sizes: Sequence[int] | None = None,
        cache: TaskCache[Task, Result] | None = None,
        small: bool = False,
        pool: Pool = "processes",
    ) -> list[Result]:
        """The results of a stage, as `run_tasks`; `small` stages run in this process."""
        started = time.monotonic()
        results = run_tasks(
            function,
            tasks,
            workers=1 if small else self.workers,
            cluster=LOCAL if small else self.cluster,
            pool=pool,
            name=name,
            sizes=sizes,
            cache=cache,
            progress=lambda done, total: self.progress(stage, done, total),
        )
        self.timings.stages[stage] = time.monotonic() - started
        return results


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int = 1,
    cluster: str = LOCAL,
    pool: Pool = "processes",
    name: Callable[[Task], str] = str,
    sizes: Sequence[int] | None = None,
    cache: TaskCache[Task, Result] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Result]:
    """`function` of every task, in the order of the tasks; all must pickle unless they stay here.

    `pool` is `threads` for functions that release the GIL; a cluster schedules for itself. `name`
    is what an error message calls a task. `sizes` (default: all equal) give the order of work;
    `progress` is called with the finished and the total size.
    """
    sizes = [1] * len(tasks) if sizes is None else sizes
    results: dict[int, Result] = {}
    for index, task in enumerate(tasks):
        found = None if cache is None else cache.load(task)
        if found is not None:
            results[index] = found
    finished, total = sum(sizes[index] for index in results), sum(sizes)
    progress(finished, total)
    call = function if cache is None else partial(cache.run_and_record, function)
    left = sorted(set(range(len(tasks))) - set(results), key=lambda index: (-sizes[index], index))
    for index, result in _dispatch(call, tasks, left, workers, cluster, pool, name):
        results[index] = result
        finished += sizes[index]
        progress(finished, total)
    return [results[index] for index in range(len(tasks))]


def _dispatch(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    order: list[int],
    workers: int,
    cluster: str,
    pool: Pool,
    name: Callable[[Task], str],
) -> Iterator[tuple[int, Result]]:
    """The index and the result of each task, as they finish."""
    if cluster != LOCAL:
        with connected(cluster):
            yield from run_on_cluster(function, tasks, order, name)
    elif workers <= 1:
        for index in order:
            yield index, function(tasks[index])
    elif pool == "threads":
        with ThreadPoolExecutor(workers) as executor:
            futures = {executor.submit(function, tasks[index]): index for index in order}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                executor.shutdown(wait=False, cancel_futures=True)
    else:
        yield from run_in_processes(function, tasks, order, min(workers, len(order)), name)


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter()
    converter.register_unstructure_hook(Path, str)
    converter.register_structure_hook(Path, lambda value, _: Path(value))
    return converter


def task_key(task: Any) -> str:
    """A hash of a task (a dataclass of plain values) and the version of Isoglot."""
    content = json.dumps(_converter().unstructure(task), sort_keys=True)
    return sha256(f"{__version__}\n{type(task).__qualname__}\n{content}".encode()).hexdigest()


@dataclass(frozen=True)
class TaskCache(Generic[Task, Result]):
    """Results of finished tasks: one JSON file for each output that tasks write.

    A record holds a hash of the task (settings, inputs by content, version of Isoglot). A task that
    differs in anything finds no record and runs; when it starts, the record of its output goes.
    """

    folder: Path
    result_type: type[Result]
    """A dataclass, or a type that JSON holds."""
    is_complete: Callable[[Task, Result], bool]
    """Whether every file that the task wrote is still there."""
    output: Callable[[Task], object]
    """What the task writes: tasks that write the same files have the same output."""
    key: Callable[[Any], str] = task_key
    """The hash of a task."""

    def load(self, task: Task) -> Result | None:
        """The result of this task, if it is finished."""
        try:
            record = json_text.parse(self._path(task).read_text(encoding="utf-8"))
            if record["key"] != self.key(task):
                return None
            result = _converter().structure(record["result"], self.result_type)
        except (OSError, ValueError, LookupError, TypeError, cattrs.BaseValidationError):
            return None
        return result if self.is_complete(task, result) else None

    def run_and_record(self, function: Callable[[Task], Result], task: Task) -> Result:
        """Runs a task in its worker, which also records the result: no crash can come between."""
        path = self._path(task)
        with write_errors(path):
            path.unlink(missing_ok=True)
        result = function(task)
        write_json(path, {"key": self.key(task), "result": _converter().unstructure(result)})
        return result

    def _path(self, task: Task) -> Path:
        place = f"{type(task).__qualname__}\n{self.output(task)}"
        return self.folder / f"{sha256(place.encode()).hexdigest()[:32]}.json"
