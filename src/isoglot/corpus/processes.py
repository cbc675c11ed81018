"""A pool of processes that loses nothing when one of them is killed.

The pools of the standard library give up as a whole when a process dies, and do not say on which
task. Here each worker has a pipe and one task at a time: the task of a worker that dies goes to a
new worker, and a task that kills its workers again and again is named.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, TypeVar

from isoglot.errors import CorpusError, IsoglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.context import SpawnContext

Task = TypeVar("Task")
Result = TypeVar("Result")

ATTEMPTS = 3
"""So often a task is begun before it is held to blame for its workers' deaths."""


def run_in_processes(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    order: Sequence[int],
    workers: int,
    name: Callable[[Task], str],
) -> Iterator[tuple[int, Result]]:
    """The number and the result of each task of `order`, as they come.

    On an error, and when the caller stops listening, the workers are ended at once.
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
                    result = worker.result()
                except (EOFError, ConnectionError):
                    deaths[index] = deaths.get(index, 0) + 1
                    if deaths[index] == ATTEMPTS:
                        raise killed(name(tasks[index])) from None
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


def killed(task: str) -> CorpusError:
    """What is said of a task that its workers did not survive."""
    return CorpusError(
        f"{task}: the process that worked on it was killed {ATTEMPTS} times, most often for want "
        "of memory. Give the command again with fewer workers or smaller files; what is finished "
        "is kept."
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
        """Hand out a task. That the worker is dead already shows when its result is asked for."""
        self.task = index
        try:
            self.pipe.send(tasks[index])
        except (BrokenPipeError, ConnectionError):
            return

    def result(self) -> Any:
        """What came of the task; raises what the task raised."""
        outcome, error = self.pipe.recv()
        self.task = None
        if error is not None:
            raise error
        return outcome

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _serve(pipe: Connection, function: Callable[[Any], Any]) -> None:
    """What a worker does: one task after the other, until its pipe is closed."""
    # an interrupt from the keyboard is the parent's to answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # there are as many workers as wanted: the threads of a library would only be in the way
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
            answer = (None, _portable(error))
        try:
            pipe.send(answer)
        except ConnectionError:
            # the parent was killed; what is finished is recorded
            return


def _portable(error: Exception) -> Exception:
    """The error as another process can raise it, with the place it came from."""
    place = "".join(traceback.format_exception(error))
    if isinstance(error, IsoglotError):
        error.__cause__ = error.__context__ = None
        return error
    return RuntimeError(f"a task failed:\n{place}")
