"""Tasks on a Ray cluster. Files must be at the same paths on all its machines.

Ray is imported when a cluster is asked for: `pip install 'isoglot[cluster]'`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from isoglot.corpus.processes import ATTEMPTS, killed
from isoglot.errors import CorpusError, IsoglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Task = TypeVar("Task")
Result = TypeVar("Result")


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A connection to a cluster, kept for all that runs inside; one that is there is used."""
    try:
        import ray
    except ImportError as error:
        raise CorpusError(
            f"--cluster {address}: needs Ray. Run: pip install 'isoglot[cluster]'"
        ) from error
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise CorpusError(
            f"--cluster {address}: no Ray cluster answers there. Start one with `ray start --head` "
            "(and `ray start --address=...` on the other machines), or use --cluster local."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def run_on_cluster(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    order: Sequence[int],
    name: Callable[[Task], str],
) -> Iterator[tuple[int, Result]]:
    """The number and the result of each task of `order`, as they come."""
    import ray

    remote = ray.remote(max_retries=ATTEMPTS - 1)(_call)
    shared = ray.put(function)
    waiting = {remote.remote(shared, tasks[index]): index for index in order}
    try:
        while waiting:
            ready, _ = ray.wait(list(waiting))
            for reference in ready:
                index = waiting.pop(reference)
                try:
                    result = ray.get(reference)
                except ray.exceptions.RayTaskError as error:
                    raise _cause(error) from None
                except ray.exceptions.RayError:
                    raise killed(name(tasks[index])) from None
                yield index, result
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)


def _call(function: Callable[[Task], Result], task: Task) -> Result:
    """One task on the cluster; Ray hands the function itself over once."""
    return function(task)


def _cause(error: Exception) -> Exception:
    """What the task itself raised, without Ray's account of it."""
    cause = getattr(error, "cause", error)
    return cause if isinstance(cause, IsoglotError) else error
