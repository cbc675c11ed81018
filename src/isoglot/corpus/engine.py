"""Where the work of preparing runs: here, in processes on this machine, or on a Ray cluster.

    function, tasks  --run-->  results, in the order of the tasks

A task is one shard of the work and a function of nothing else, so neither the number of workers
nor the machine can change what is written. Largest tasks start first. A task whose worker is killed
is done again; one that is recorded as finished (`isoglot.corpus.finished`) is not. Nothing outside
this file knows where the work runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from isoglot.corpus import cluster as ray_cluster
from isoglot.corpus.processes import run_in_processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.corpus.finished import Finished

Task = TypeVar("Task")
Result = TypeVar("Result")
Name = Callable[[Task], str]

LOCAL = "local"
"""The cluster that is none: this machine."""


def run(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int = 1,
    cluster: str = LOCAL,
    name: Callable[[Task], str] = str,
    sizes: Sequence[int] | None = None,
    done: Finished[Task, Result] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """`function` of every task, in the order of the tasks.

    Args:
        function: Must pickle, as tasks and results must, unless one worker does it all here.
        tasks: What it is called with.
        workers: Processes on this machine; a cluster decides for itself.
        cluster: `local`, `auto` (the Ray cluster this machine belongs to) or `ray://host:port`.
        name: What a message calls a task.
        sizes: How large each task is, for the order of the work and for progress; else all alike.
        done: Where the results of finished tasks are recorded and looked up.
        progress: Told how much of the total size is done.

    Raises:
        CorpusError: a task's worker was killed again and again; the message names the task.
    """
    sizes = [1] * len(tasks) if sizes is None else sizes
    results: dict[int, Result] = {}
    for index, task in enumerate(tasks):
        found = None if done is None else done.load(task)
        if found is not None:
            results[index] = found
    finished, total = sum(sizes[index] for index in results), sum(sizes)
    if progress is not None:
        progress(finished, total)
    call = function if done is None else partial(_recorded, function, done)
    left = sorted(set(range(len(tasks))) - set(results), key=lambda index: (-sizes[index], index))
    for index, result in _somewhere(call, tasks, left, workers, cluster, name):
        results[index] = result
        finished += sizes[index]
        if progress is not None:
            progress(finished, total)
    return [results[index] for index in range(len(tasks))]


def _somewhere(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    order: list[int],
    workers: int,
    cluster: str,
    name: Callable[[Task], str],
) -> Iterator[tuple[int, Result]]:
    """The number and the result of each task, as they come."""
    if cluster != LOCAL:
        with ray_cluster.connected(cluster):
            yield from ray_cluster.run_on_cluster(function, tasks, order, name)
    elif workers <= 1:
        for index in order:
            yield index, function(tasks[index])
    else:
        yield from run_in_processes(function, tasks, order, min(workers, len(order)), name)


def _recorded(
    function: Callable[[Task], Result], done: Finished[Task, Result], task: Task
) -> Result:
    """The worker itself writes down that it has finished, so that no one can be late to."""
    done.forget(task)
    result = function(task)
    done.store(task, result)
    return result
