"""Cells of a study: several at a time in worker processes, until a deadline, results in one file.

A cell is a named piece of work (an arm with a seed) whose result is a dictionary. A study that is
begun again with the file of an earlier call skips the cells that are in it, so that it continues on
another machine. No cell is begun that would end after the deadline, as far as finished ones tell.

    cells --worker processes--> results --> FILE.json, written again after every cell
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import tarfile
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isoglot.atomic import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

Result = dict[str, Any]
_START_SECONDS = 40.0
"""Imports, the model and its compilation: what a cell takes besides its steps, at first guess."""
LIBRARIES = ("isoglot.pretraining.run", "transformers")
"""What takes a process long to import."""
_LAST_CELLS = 6
"""Cells that tell how long the next one takes."""


@dataclass(slots=True, kw_only=True)
class Deadline:
    """When the last cell must have ended, and what the next one will take."""

    seconds: float
    """From the start of the program."""
    expected: float = 60.0
    """Seconds of a cell, before one has been timed."""
    began: float = field(default_factory=time.monotonic)
    taken: list[float] = field(default_factory=list)
    """Seconds of each cell so far; the first ones of a worker include its imports."""

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.seconds - (time.monotonic() - self.began)

    def allows(self) -> bool:
        """Would a cell that begins now end in time?"""
        last = self.taken[-_LAST_CELLS:]
        return self.left > (1.1 * max(last) if last else self.expected + _START_SECONDS)


class ResultsFile:
    """The results of a study by cell, those of earlier calls included."""

    def __init__(
        self,
        file: Path,
        known: Iterable[Path] = (),
        *,
        render: Callable[[dict[str, Result]], str] | None = None,
    ) -> None:
        """`render`: the text of FILE.md, written beside it."""
        self.file, self._render = file, render
        self.cells: dict[str, Result] = {}
        self.about: Result = {}
        """What all cells share."""
        for one in (*known, file):
            if one.is_file():
                found = json.loads(one.read_text(encoding="utf-8"))
                self.cells |= found["cells"]
                self.about = _merged(self.about, found["about"])

    def add(self, name: str, result: Result) -> None:
        """Keep a result, on disk too."""
        self.cells[name] = result
        self.write()

    def write(self) -> None:
        """Write all results."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.file, {"about": self.about, "cells": dict(sorted(self.cells.items()))})
        if self._render is not None:
            self.file.with_suffix(".md").write_text(self._render(self.cells), encoding="utf-8")


def _merged(one: Result, other: Result) -> Result:
    """Both, those of `other` where both have a value; dictionaries in them are merged, too."""
    both = {
        key: _merged(one[key], value)
        for key, value in other.items()
        if isinstance(value, dict) and isinstance(one.get(key), dict)
    }
    return one | other | both


class Workers:
    """Processes that work on cells, one after the other; they import while others still prepare."""

    def __init__(self, parallel: int, imports: Sequence[str] = LIBRARIES) -> None:
        self.parallel, self._imports = parallel, imports
        self._open()

    def _open(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self.parallel, context, _start_worker)
        for _ in range(self.parallel):
            self._pool.submit(_import, self._imports)

    def submit(self, work: Callable[[str], Result], name: str, logs: Path) -> Future[Result]:
        """Begin a cell."""
        return self._pool.submit(_guarded, work, name, logs)

    def reopen(self) -> None:
        """New processes in place of those of which one has died."""
        self.close()
        self._open()

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def run_cells(
    names: Iterable[str],
    work: Callable[[str], Result],
    results: ResultsFile,
    deadline: Deadline,
    *,
    workers: Workers,
    summary: Callable[[Result], str],
    logs: Path,
) -> list[str]:
    """Run the cells that have no result yet, so many at a time; gives those that failed.

    Args:
        names: the cells, the most valuable first.
        work: gives the result of a cell; runs in a worker process, so it must be importable.
        results: where results go.
        deadline: no cell is begun that would end later.
        workers: the processes.
        summary: a line about a result.
        logs: folder for what cells print.
    """
    waiting = [name for name in names if name not in results.cells]
    print(f"{len(waiting)} cells to run, {workers.parallel} at a time", flush=True)
    failed: list[str] = []
    running: dict[Future[Result], tuple[str, float]] = {}
    while running or (waiting and deadline.allows()):
        while waiting and len(running) < workers.parallel and deadline.allows():
            name = waiting.pop(0)
            running[workers.submit(work, name, logs)] = (name, time.monotonic())
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        try:
            for one in done:
                name, began = running[one]
                failed += _finish(name, one, time.monotonic() - began, results, summary)
                deadline.taken.append(time.monotonic() - began)
                del running[one]
        except BrokenProcessPool:
            lost = [name for name, _ in running.values()]
            print(f"a worker process died; lost: {', '.join(lost)}", flush=True)
            failed += lost
            running.clear()
            workers.reopen()
    if waiting:
        print(f"not begun for lack of time: {', '.join(waiting)}", flush=True)
    return failed


def _finish(
    name: str,
    future: Future[Result],
    seconds: float,
    results: ResultsFile,
    summary: Callable[[Result], str],
) -> list[str]:
    result = future.result()
    if "error" in result:
        print(f"{name:<28} FAILED after {seconds:.0f} s\n{result['error']}", flush=True)
        return [name]
    results.add(name, result | {"wall_seconds": round(seconds, 1)})
    print(f"{name:<28} {summary(result)}  {seconds:.0f} s", flush=True)
    return []


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


def _start_worker() -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _import(names: Sequence[str]) -> None:
    for name in names:
        importlib.import_module(name)


def loader_workers(cells: int) -> int:
    """Loader processes of each of so many cells that share the machine's cores."""
    return max(1, min(8, (os.cpu_count() or 1) // cells - 1))


def forget_compiled() -> None:
    """Free what the last model of a worker has left: compiled graphs, and the GPU's memory."""
    import gc

    import torch
    from accelerate.state import AcceleratorState

    torch.compiler.reset()
    # fine-tuning and pre-training may ask for another precision than the run before
    AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def unpack(archive: Path | None, work: Path, name: str = "corpus") -> None:
    """A folder of WORK from an archive, unless it is there."""
    if archive is not None and not (work / name).exists():
        work.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as packed:
            packed.extractall(work, filter="data")
