"""Cells of a study: several at a time in worker processes, until a deadline, results in one file.

A cell is a named piece of work (an arm with a seed) whose result is a dictionary. A study that is
begun again with the file of an earlier call skips the cells that are in it, so that it continues on
another machine. No cell is begun that would end after the deadline, as far as finished ones tell;
one that has not ended by then is ended, and so is one that takes far longer than others.

    cells --worker processes--> results --> FILE.json, written again after every cell
"""

from __future__ import annotations

import json
import os
import tarfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.workers import Ended, Result, Workers
from isoglot.atomic import write_json, write_text

_START_SECONDS = 40.0
"""Imports, the model and its compilation: what a cell takes besides its steps, at first guess."""
_LAST_CELLS = 6
"""Cells that tell how long the next one takes."""
_HUNG = 4.0
"""A cell that takes so many times the longest of the last ones is ended."""
_TICK = 5.0
"""Seconds after which the clock is looked at again."""
_AHEAD = 3
"""While cells wait for a preparation, only so many for each worker are looked at for others."""


@dataclass(slots=True, kw_only=True)
class Deadline:
    """When the last cell must have ended, and what the next one will take."""

    seconds: float
    """From the start of the program."""
    expected: float = 60.0
    """Seconds of a cell of cost 1, before one has been timed."""
    began: float = field(default_factory=time.monotonic)
    taken: list[float] = field(default_factory=list)
    """Seconds of each cell so far over its cost; the first ones of a worker include its imports."""

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.seconds - (time.monotonic() - self.began)

    def allows(self, cost: float = 1.0) -> bool:
        """Would a cell that begins now end in time? `cost` is in cells of the usual size."""
        last = self.taken[-_LAST_CELLS:]
        return self.left > cost * (1.1 * max(last) if last else self.expected + _START_SECONDS)

    def is_hung(self, seconds: float, cost: float = 1.0) -> bool:
        """Has a cell taken far longer than others? Never before one has been timed."""
        last = self.taken[-_LAST_CELLS:]
        return bool(last) and seconds > _HUNG * cost * max(*last, self.expected)


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
        for one in (*known, *([file] if file.is_file() else ())):
            found = json.loads(one.read_text(encoding="utf-8"))
            self.cells |= found["cells"]
            self.about = _merged(self.about, found["about"])

    def has(self, name: str) -> bool:
        """Is there a whole result of a cell, of which no part has failed?"""
        return name in self.cells and not self.cells[name].get("errors")

    def add(self, name: str, result: Result) -> None:
        """Keep a result, on disk too."""
        self.cells[name] = result
        self.write()

    def write(self) -> None:
        """Write all results."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.file, {"about": self.about, "cells": dict(sorted(self.cells.items()))})
        if self._render is not None:
            try:
                write_text(self.file.with_suffix(".md"), self._render(self.cells))
            except Exception:  # the results are on disk: a page stops no study
                print(traceback.format_exc(limit=-4), flush=True)


def _merged(one: Result, other: Result) -> Result:
    """Both, those of `other` where both have a value; dictionaries in them are merged, too."""
    both = {
        key: _merged(one[key], value)
        for key, value in other.items()
        if isinstance(value, dict) and isinstance(one.get(key), dict)
    }
    return one | other | both


@dataclass(slots=True, kw_only=True)
class CellQueue:
    """The cells of a call in the order of their value, and what they wait for."""

    work: Callable[[str], Result]
    """Gives the result of a cell; runs in a worker process, so it must be importable."""
    results: ResultsFile
    deadline: Deadline
    workers: Workers
    summary: Callable[[Result], str]
    """A line about a result."""
    logs: Path
    """Folder for what cells print."""
    cost: Callable[[str], float] = lambda _: 1.0
    """What a cell takes, in cells of the usual size."""
    needs: Callable[[str], Iterable[str]] = lambda _: ()
    """Preparations that a cell waits for: names that `work` is called with, too."""
    prepared: Callable[[str, Result], None] = lambda *_: None
    """Called with the result of a preparation; a `ValueError` is its failure."""
    failed: list[str] = field(default_factory=list)
    _waiting: list[str] = field(default_factory=list)
    _begun: set[str] = field(default_factory=set)
    _ready: set[str] = field(default_factory=set)
    """Preparations that were begun, and those that are done."""
    _again: set[str] = field(default_factory=set)
    """Cells and preparations that are begun again, once, after their process died."""

    def run(self, names: Iterable[str]) -> list[str]:
        """Run the cells that have no result yet; gives those that failed."""
        self._waiting = [name for name in names if not self.results.has(name)]
        told = f"{len(self._waiting)} cells to run, {self.workers.parallel} at a time"
        print(told, flush=True)
        while self._begin() and self.deadline.left > 0:
            for ended in self.workers.wait(min(_TICK, self.deadline.left)):
                self._finish(ended)
            self._end_hung()
        for name in self.workers.running:
            print(f"{name:<28} has not ended in time", flush=True)
        if self._waiting:
            print(f"not begun for lack of time: {', '.join(self._waiting)}", flush=True)
        return self.failed

    def _begin(self) -> bool:
        """Give cells to idle workers; says whether any worker has one."""
        while self.workers.has_idle and (name := self._next()) is not None:
            self.workers.begin(self.work, name, self.logs)
        return bool(self.workers.running)

    def _next(self) -> str | None:
        """The first cell that can begin and end in time, or a preparation that one waits for."""
        blocked = 0
        for name in self._waiting:
            missing = [one for one in self.needs(name) if one not in self._ready]
            if not self.deadline.allows(sum(map(self.cost, (*missing, name)))):
                continue
            if not missing:
                self._waiting.remove(name)
                return name
            new = [one for one in missing if one not in self._begun]
            if new:
                self._begun.add(new[0])
                return new[0]
            blocked += 1
            if blocked == _AHEAD * self.workers.parallel:  # the rest is worth less
                break
        return None

    def _end_hung(self) -> None:
        for name, seconds in self.workers.running.items():
            if self.deadline.is_hung(seconds, self.cost(name)):
                for ended in self.workers.kill(name, f"ended, as it took {seconds:.0f} s"):
                    self._finish(ended)

    def _finish(self, ended: Ended) -> None:
        name, result = ended.name, ended.result
        if name in self._begun:
            if result.get("died") and name not in self._again:
                # every cell that waits for it would be lost
                print(f"{name:<28} {result['error']}; it is run again", flush=True)
                self._again.add(name)
                self._begun.remove(name)
            else:
                self._finish_preparation(name, result)
        elif result.get("died") and name not in self._again:
            print(f"{name:<28} {result['error']}; it is run again at the end", flush=True)
            self._again.add(name)
            self._waiting.append(name)
        elif "error" in result:
            self._fail(name, f"after {ended.seconds:.0f} s\n{result['error']}")
        else:
            self.deadline.taken.append(ended.seconds / self.cost(name))
            self.results.add(name, result | {"wall_seconds": round(ended.seconds, 1)})
            print(f"{name:<28} {self.summary(result)}  {ended.seconds:.0f} s", flush=True)
            for part, error in result.get("errors", {}).items():
                self._fail(f"{name}, {part}", f"\n{error}")

    def _finish_preparation(self, name: str, result: Result) -> None:
        error = result.get("error")
        if error is None:
            try:
                self.prepared(name, result)
            except ValueError as fault:
                error = str(fault)
        if error is None:
            self._ready.add(name)
            return
        self._fail(name, f"\n{error}")
        for cell in [one for one in self._waiting if name in self.needs(one)]:
            self._waiting.remove(cell)
            self._fail(cell, f"for lack of {name}")

    def _fail(self, name: str, how: str) -> None:
        self.failed.append(name)
        print(f"{name:<28} FAILED {how}", flush=True)


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


def unpack(archive: Path | None, work: Path) -> None:
    """The folders of an archive into WORK, unless an earlier call has unpacked all of it."""
    if archive is None:
        return
    done = work / f".{archive.name}.unpacked"
    if not done.exists():
        work.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as packed:
            packed.extractall(work, filter="data")
        done.touch()
