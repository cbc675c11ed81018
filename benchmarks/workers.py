"""Worker processes of a study: one cell each at a time, few of them in training at a time.

Each process has a pipe to the study. A process that dies or is killed loses its own cell and its
training slot alone, and another one takes its place; so does one whose cell has failed, because an
error of CUDA stays in a process.

    study --cell--> worker;  worker --asks for a slot, frees it, result--> study
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Result = dict[str, Any]
LIBRARIES = ("isoglot.pretraining.run", "isoglot.finetuning.train", "transformers")
"""What takes a process long to import."""
ASK, FREE, DONE = "ask", "free", "done"
"""Messages of a worker."""
_LOOK_SECONDS = 1.0
"""A worker looks so often whether the study is still there."""
_END_SECONDS = 5.0
"""Time that a process has to end after it has closed its pipe."""
STOP_SECONDS = 15.0
"""Time that processes have to end; SIGTERM makes a training save a checkpoint."""

_pipe: Connection | None = None
"""In a worker process: its pipe, if trainings at a time are limited."""


@contextmanager
def training_slot() -> Iterator[None]:
    """Inside the block, no more than `Workers.trainings` of all workers are at a time.

    A few trainings fill a GPU, and scoring a model is mostly work of the CPU: with more workers
    than trainings, some score while others train.
    """
    if _pipe is None:
        yield
        return
    _pipe.send((ASK, None))
    _pipe.recv()
    try:
        yield
    finally:
        with suppress(OSError):  # the study has ended
            _pipe.send((FREE, None))


@dataclass(frozen=True, slots=True)
class Ended:
    """A cell that a worker is no longer busy with."""

    name: str
    result: Result
    """Has `error` if the cell failed, `died` if its process did, and `errors` if a part failed."""
    seconds: float


@dataclass(slots=True, eq=False)
class _Worker:
    """A process and what it is doing."""

    process: Any
    pipe: Connection
    cell: str | None = None
    began: float = 0.0
    busy_since: float = 0.0
    """As `began`, or when it was given a slot that it had waited for."""
    has_slot: bool = False


class Workers:
    """Processes that work on cells, one after the other; they import while others still prepare."""

    def __init__(
        self,
        parallel: int,
        imports: Sequence[str] = LIBRARIES,
        *,
        trainings: int | None = None,
        threads: int | None = None,
    ) -> None:
        """Start the processes.

        Args:
            parallel: their number.
            imports: modules that they import at once.
            trainings: workers that may be in a `training_slot` at a time; none: all.
            threads: of PyTorch in each process; none: all cores.
        """
        self.parallel, self.trainings = parallel, trainings
        self._begin_with = (trainings is not None, imports, threads)
        self._all = [self._start() for _ in range(parallel)]
        self._queue: list[_Worker] = []
        """Those that wait for a slot, the one that has waited longest first."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        # no daemon, which could not have the loaders of a training as its children
        process = context.Process(target=_work, args=(there, os.getpid(), *self._begin_with))
        process.start()
        there.close()
        return _Worker(process, here)

    @property
    def has_idle(self) -> bool:
        """Is a worker without a cell?"""
        return any(worker.cell is None for worker in self._all)

    @property
    def running(self) -> dict[str, float]:
        """Cell -> seconds of work without a pause; 0 while it waits for a slot."""
        now = time.monotonic()
        return {
            one.cell: 0.0 if one in self._queue else now - one.busy_since
            for one in self._all
            if one.cell is not None
        }

    def begin(self, work: Callable[[str], Result], name: str, logs: Path) -> None:
        """Give a cell to an idle worker."""
        worker = next(one for one in self._all if one.cell is None)
        worker.cell = name
        worker.began = worker.busy_since = time.monotonic()
        with suppress(OSError):  # it has died while idle: `wait` finds out
            worker.pipe.send((work, name, logs))

    def wait(self, seconds: float) -> list[Ended]:
        """Serve the workers for up to so many seconds, or until a cell has ended."""
        until = time.monotonic() + seconds
        ended: list[Ended] = []
        while not ended and (left := until - time.monotonic()) > 0:
            by_handle: dict[Any, _Worker] = {}
            for worker in self._all:
                by_handle |= {worker.pipe: worker, worker.process.sentinel: worker}
            ready = [by_handle[handle] for handle in wait(list(by_handle), left)]
            for worker in dict.fromkeys(ready):
                ended += self._serve(worker)
        return ended

    def _serve(self, worker: _Worker) -> list[Ended]:
        """Read what a worker says, or see that it has died."""
        try:
            message, result = worker.pipe.recv() if worker.pipe.poll() else ("died", {})
        except (EOFError, OSError):
            message, result = "died", {}
        if message == ASK:
            self._queue.append(worker)
            self._give_slots()
            return []
        if message == FREE:
            self._free(worker)
            return []
        if message == "died":
            worker.process.join(_END_SECONDS)
            code = worker.process.exitcode
            result = {"error": f"its process died (exit code {code})", "died": True}
        return self._end(worker, result)

    def _end(self, worker: _Worker, result: Result) -> list[Ended]:
        name, seconds = worker.cell, time.monotonic() - worker.began
        worker.cell = None
        if _has_failed(result):
            self._free(worker)
            _join([worker])
            self._all[self._all.index(worker)] = self._start()
        return [] if name is None else [Ended(name, result, seconds)]

    def kill(self, name: str, reason: str) -> list[Ended]:
        """End the process of a cell."""
        (worker,) = (one for one in self._all if one.cell == name)
        return self._end(worker, {"error": reason})

    def _free(self, worker: _Worker) -> None:
        if worker in self._queue:
            self._queue.remove(worker)
        worker.has_slot = False
        self._give_slots()

    def _give_slots(self) -> None:
        while self._queue and sum(one.has_slot for one in self._all) < (self.trainings or 0):
            worker = self._queue.pop(0)
            worker.has_slot, worker.busy_since = True, time.monotonic()
            with suppress(OSError):  # it has died: `wait` finds out
                worker.pipe.send(None)

    def close(self) -> None:
        """End the processes; a training has a moment to save a checkpoint."""
        for worker in self._all:
            if worker.cell is None:
                worker.pipe.close()  # it reads the end of the pipe, and returns
            else:
                worker.process.terminate()
        _join(self._all, STOP_SECONDS)
        self._all, self._queue = [], []


def _join(workers: Sequence[_Worker], seconds: float = 0.0) -> None:
    """Wait for the end of processes so many seconds in all, then kill those that are left."""
    until = time.monotonic() + seconds
    for worker in workers:
        worker.process.join(max(0.0, until - time.monotonic()))
        if worker.process.exitcode is None:
            worker.process.kill()
            worker.process.join()
        worker.pipe.close()


def _work(
    pipe: Connection,
    study: int,
    limited: bool,
    imports: Sequence[str],
    threads: int | None,
) -> None:
    """The life of a worker process: cells until one fails, or until the study has ended."""
    threading.Thread(target=_end_with, args=(study,), daemon=True).start()
    global _pipe  # noqa: PLW0603 (cells reach it through `training_slot`)
    _pipe = pipe if limited else None
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        # each process would have a compiler process for every core
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(4 * threads))
    with suppress(Exception):  # a cell that needs them says what is wrong
        for name in imports:
            importlib.import_module(name)
    while True:
        try:
            work, name, logs = pipe.recv()
            result = _guarded(work, name, logs)
            pipe.send((DONE, result))
        except (EOFError, OSError):  # the study has ended
            return
        if _has_failed(result):
            return


def _has_failed(result: Result) -> bool:
    """Did a cell fail, or a part of it? Then its process ends."""
    return not {"error", "errors"}.isdisjoint(result)


def _end_with(study: int) -> None:
    """End this process when that of the study has ended; a training saves a checkpoint."""
    while os.getppid() == study:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _guarded(work: Callable[[str], Result], name: str, logs: Path) -> Result:
    """The result of a cell, or what went wrong in it: one cell stops no other."""
    try:
        with quiet(logs / f"{name}.txt"):
            return work(name)
    except (Exception, SystemExit):
        return {"error": traceback.format_exc(limit=-6)}


@contextmanager
def quiet(file: Path) -> Iterator[None]:
    """Inside the block, what Python prints goes to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
        yield
