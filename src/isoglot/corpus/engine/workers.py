"""Worker processes that may be killed (by the kernel, for lack of memory).

The pools of the standard library fail as a whole when a process dies, without naming its task. Here
each process has a pipe and one task at a time: the task of a process that dies goes to a new one,
and a task whose workers die three times is named in the error.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, TypeVar

from isoglot.errors import CorpusError, IsoglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.context import SpawnContext

Task = TypeVar("Task")
Result = TypeVar("Result")

MAX_ATTEMPTS = 3
"""Times a task is started before its workers' deaths are blamed on it."""


def run_in_processes(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    order: Sequence[int],
    workers: int,
    name: Callable[[Task], str],
) -> Iterator[tuple[int, Result]]:
    """The index and the result of each task of `order`, as they finish.

    On an error, and when the caller stops iterating, the workers are killed.
    """
    # spawn: a forked child would inherit the locks of this process's tokenizer threads
    context = multiprocessing.get_context("spawn")
    waiting = list(reversed(order))
    deaths: dict[int, int] = {}
    pool = {worker.pipe: worker for worker in (_Worker(context, function) for _ in range(workers))}
    try:
        while True:
            for worker in pool.values():
                if worker.task is None and waiting:
                    worker.begin(waiting.pop(), tasks)
            busy = [worker for worker in pool.values() if worker.task is not None]
            if not busy:
                return
            for pipe in wait([worker.pipe for worker in busy]):
                assert isinstance(pipe, Connection)
                worker = pool[pipe]
                index = worker.task
                assert index is not None
                try:
                    result = worker.result(name(tasks[index]))
                except (EOFError, ConnectionError):
                    deaths[index] = deaths.get(index, 0) + 1
                    if deaths[index] == MAX_ATTEMPTS:
                        raise worker_killed(name(tasks[index])) from None
                    waiting.append(index)
                    del pool[pipe]
                    worker.end()
                    replacement = _Worker(context, function)
                    pool[replacement.pipe] = replacement
                else:
                    yield index, result
    finally:
        for worker in pool.values():
            worker.end()


def worker_killed(task: str) -> CorpusError:
    """The error for a task whose workers were all killed."""
    return CorpusError(
        f"{task}: its worker process was killed {MAX_ATTEMPTS} times, most often for lack of "
        "memory. Run the command again with fewer workers or smaller files; finished work is kept."
    )


class _Worker:
    """One process, the pipe to it, and the task it is working on."""

    def __init__(self, context: SpawnContext, function: Callable[[Any], Any]) -> None:
        self.pipe, theirs = context.Pipe()
        self.task: int | None = None
        self._process = context.Process(target=_serve, args=(theirs, function), daemon=True)
        self._process.start()
        # only the child holds its end now, so that its death closes the pipe
        theirs.close()

    def begin(self, index: int, tasks: Sequence[Any]) -> None:
        """Sends a task; a dead worker is noticed when its result is read."""
        self.task = index
        with suppress(ConnectionError):
            self.pipe.send(tasks[index])

    def result(self, name: str) -> Any:
        """The result of the task; raises what the task raised."""
        outcome, error = self.pipe.recv()
        self.task = None
        if error is not None:
            raise error if isinstance(error, IsoglotError) else task_error(name, error)
        return outcome

    def end(self) -> None:
        """Kills the process."""
        self.pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _serve(pipe: Connection, function: Callable[[Any], Any]) -> None:
    """The worker: runs one task after another until its pipe is closed."""
    # the parent handles Ctrl-C
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # workers already use all cores: threads of the tokenizers library would compete with them
    os.environ["RAYON_NUM_THREADS"] = "1"
    while True:
        try:
            task = pipe.recv()
        except (EOFError, ConnectionError):
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = (function(task), None)
        except Exception as error:
            answer = (None, portable_error(error))
        try:
            pipe.send(answer)
        except ConnectionError:
            # the parent was killed; the result is in the task cache
            return


def portable_error(error: Exception) -> Exception:
    """The error in a form that pickles: a user's as it is, one of ours as its traceback."""
    if isinstance(error, IsoglotError):
        error.__cause__ = error.__context__ = None
        return error
    return RuntimeError("".join(traceback.format_exception(error)))


def task_error(name: str, error: Exception) -> RuntimeError:
    """The error for a task that raised one of ours (`portable_error`)."""
    return RuntimeError(f"{name}: a task failed; finished work is kept.\n{error}")
