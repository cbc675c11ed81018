"""Tasks on a Ray cluster (`pip install 'isoglot[cluster]'`), whose machines see the same files.

Some tasks for each core are in flight, so that a stage of a million tasks needs no more memory here
than one of a thousand. A task whose worker or machine is lost is repeated elsewhere; a task that
loses three is named in the error. What a task has finished is in the task cache.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from isoglot.corpus.engine.workers import MAX_ATTEMPTS, portable_error, task_error, worker_killed
from isoglot.errors import CorpusError, IsoglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Task = TypeVar("Task")
Result = TypeVar("Result")

_TASKS_PER_CORE = 4
"""Tasks in flight for each core: enough that a cluster which grows by demand sees the demand."""
_MIN_IN_FLIGHT = 64
_LOOK_SECONDS = 10.0
"""Seconds after which the cores of the cluster are counted again."""


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A connection to a cluster for the block; an existing one is used and kept."""
    started = connect(address)
    try:
        yield
    finally:
        if started:
            import ray

            ray.shutdown()


def connect(address: str) -> bool:
    """Connects this process to a cluster; False if it already is."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise CorpusError(
            f"--cluster {address}: needs Ray. Run: pip install 'isoglot[cluster]'"
        ) from error
    if ray.is_initialized():
        return False
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise CorpusError(
            f"--cluster {address}: no Ray cluster answers there. Start one with `ray start --head` "
            "(and `ray start --address=...` on the other machines), or leave --cluster out."
        ) from error
    return True


def run_on_cluster(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    order: Sequence[int],
    name: Callable[[Task], str],
) -> Iterator[tuple[int, Result]]:
    """The index and the result of each task of `order`, as they finish."""
    import ray

    remote = ray.remote(max_retries=MAX_ATTEMPTS - 1)(_call)
    shared = ray.put(function)
    waiting = iter(order)
    running: dict[Any, int] = {}
    room, looked = _in_flight(), time.monotonic()
    try:
        while True:
            if time.monotonic() - looked > _LOOK_SECONDS:
                room, looked = _in_flight(), time.monotonic()
            for _ in range(room - len(running)):
                index = next(waiting, None)
                if index is None:
                    break
                running[remote.remote(shared, tasks[index])] = index
            if not running:
                return
            for reference in ray.wait(list(running))[0]:
                index = running.pop(reference)
                yield index, _result(reference, name(tasks[index]))
    except ConnectionError as error:
        raise CorpusError(
            f"The connection to the Ray cluster was lost ({error}). Run the command again; "
            "finished work is kept."
        ) from error
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _in_flight() -> int:
    """How many tasks the cluster is given at a time; it may have grown."""
    import ray

    cores = int(ray.cluster_resources().get("CPU", 1))
    return max(_MIN_IN_FLIGHT, _TASKS_PER_CORE * cores)


def _result(reference: Any, name: str) -> Any:
    """The result of a finished task; raises what the task raised, without Ray's wrapping."""
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, IsoglotError):
            raise cause from None
        raise task_error(name, cause if isinstance(cause, Exception) else error) from None
    except ray.exceptions.RayError as error:
        raise worker_killed(name) from error


def _call(function: Callable[[Task], Result], task: Task) -> Result:
    """One task on the cluster; Ray sends the function itself once."""
    # workers already use all cores: threads of the tokenizers library would compete with them
    os.environ["RAYON_NUM_THREADS"] = "1"
    try:
        return function(task)
    except Exception as error:
        raise portable_error(error) from None
