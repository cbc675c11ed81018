"""Measuring a run before it starts: rows at a time that fit the memory, and what its parts cost.

Every process of a run tries and times in a process of its own (`trial_process.py`); all take the
smallest number of rows, and the slowest one's times.
"""

from __future__ import annotations

import math
import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from rich.console import Console

from isoglot.corpus import Corpus
from isoglot.errors import IsoglotError
from isoglot.objectives.base import Objective
from isoglot.pretraining.config import PretrainConfig
from isoglot.pretraining.estimates.costs import RunCosts
from isoglot.pretraining.estimates.micro_rows import (
    MicroRows,
    Search,
    SizeTrial,
    encoded_twice,
    in_one_piece,
    possible_sizes,
    split_sensitive,
)
from isoglot.pretraining.estimates.trial_process import TrialError, TrialProcess, TrialSpec
from isoglot.pretraining.memory import free_memory, gib
from isoglot.pretraining.processes.waiting import wait_for_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

T = TypeVar("T")
_CPU_SHARE, _GPU_SHARE = 0.8, 0.92
"""The share of the free memory that a trial may take: the rest is for what a run does besides."""
_CPU_TOKENS, _GPU_TOKENS = 512, 32_768
"""Tokens of the first micro-batch that is tried."""
_WHOLE_STEP = 8
"""A whole step is tried first where it is worth it, up to so many times these tokens."""
_SIZE_SECONDS = 2.0
"""Seconds for which a number of rows is timed, after its warm-up."""
_SEARCH_SECONDS, _COST_SECONDS = 120.0, 10.0
"""Seconds for trying numbers of rows, and for timing steps, where no hours are given."""
_SEARCH_SHARE, _COST_SHARE = 0.05, 0.04
"""The same as shares of the hours."""
_MAX_COST_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBudget:
    """The time that a whole command may take."""

    hours: float
    started: float
    """When it started, by `time.monotonic`."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return 3600 * self.hours

    def left(self, clock: Callable[[], float] = time.monotonic) -> float:
        """Seconds that are left now."""
        return self.seconds - (clock() - self.started)


def time_budget(hours: float | None, started: float | None = None) -> TimeBudget | None:
    """A budget of hours from a time of `time.monotonic` on, or from now on.

    Raises:
        IsoglotError: it is no time.
    """
    if hours is None:
        return None
    if not 0 < hours < math.inf:
        raise IsoglotError(f"--hours: {hours:g} leaves no time to train. Give a number above 0.")
    return TimeBudget(hours=hours, started=time.monotonic() if started is None else started)


def process_start() -> float:
    """When this process was started, by `time.monotonic`; where that is not known, now."""
    try:
        after_name = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2]
        since_boot = int(after_name.split()[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot
    except (OSError, ValueError, AttributeError):
        age = 0.0
    return time.monotonic() - max(age, 0.0)


@dataclass(slots=True, kw_only=True)
class RunMeasurer:
    """Tries and times a recipe in processes of its own, on every process of a run together."""

    config: PretrainConfig
    """The recipe; its model is the one to start from, transplanted already."""
    corpus: Corpus
    scratch: Path
    accelerator: Accelerator
    objectives: Mapping[str, Objective]
    console: Console
    steps: tuple[int, ...]
    """Steps of the stages, as proportions."""
    budget: TimeBudget | None = None
    sharing: int = 1
    """Runs that will share the memory of the device."""
    search_seconds: float | None = None
    """Time for trying numbers of rows; none: two minutes, or a share of the hours."""
    _trial: TrialProcess | None = field(default=None, init=False)
    _runs: bool = field(default=False, init=False)
    """Has a number of rows been run?"""

    def __enter__(self) -> RunMeasurer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_trial()

    def micro_rows(self) -> MicroRows:
        """The recipe's rows at a time, or the fastest that fit the memory of every process.

        Raises:
            IsoglotError: none fits.
        """
        given = self.config.batch.micro_rows
        if given != "auto":
            return MicroRows(number=given, reason="the recipe's number")
        found = self.on_all(self._search)
        return min(found, key=lambda one: one.number)

    def costs(self, micro_rows: int, seconds: float | None = None) -> RunCosts:
        """What the parts of the run cost with so many rows at a time."""
        if seconds is None:
            seconds = _COST_SECONDS
            if self.budget is not None:
                seconds = min(_COST_SHARE * self.budget.seconds, _MAX_COST_SECONDS)
        self._say(f"timing steps with {micro_rows} rows at a time ...")
        if self.accelerator.num_processes > 1:  # in trials that exchange gradients
            port = self.on_all(_free_port)[0]
            self._end_trial()
            spec = self._spec(self.config.batch.rows)
            self._trial = TrialProcess(spec, self.accelerator.device, port=port)
        found = self.on_all(lambda: self._own_trial().costs(micro_rows, seconds))
        return RunCosts.highest(found)

    def _search(self) -> MicroRows:
        trial, world = self._own_trial(), self.accelerator.num_processes
        on_gpu = self.accelerator.device.type == "cuda"
        seconds = _SEARCH_SECONDS
        if self.search_seconds is not None:
            seconds = self.search_seconds
        elif self.budget is not None:
            seconds = min(_SEARCH_SHARE * self.budget.seconds, seconds)
        smallest = trial.smallest()
        allowed = (trial.spec.max_bytes or sys.maxsize) + trial.used_bytes
        search = Search(
            sizes=possible_sizes(self.config.row_unit, world, smallest),
            run=lambda number: self._try(trial, number),
            seconds=seconds,
            max_bytes=None if on_gpu else allowed,
        )
        if names := split_sensitive(self.objectives):
            return in_one_piece(search, names)
        twice = encoded_twice(self.objectives)
        length, whole = self.config.batch.row_length, search.sizes[-1]
        return search.best(first_rows(length, whole, on_gpu=on_gpu, twice=twice))

    def _own_trial(self) -> TrialProcess:
        """The trial process of this process, with its part of a step."""
        if self._trial is None:
            spec = self._spec(self.config.batch.rows // self.accelerator.num_processes)
            self._trial = TrialProcess(spec, self.accelerator.device)
        return self._trial

    def _end_trial(self) -> None:
        if self._trial is not None:
            self._trial.close()
            self._trial = None

    def _try(self, trial: TrialProcess, number: int) -> SizeTrial | None:
        """Try a number of rows, and say how it went.

        A number that ends with any other error than those of memory is left out if a smaller one
        has run: kernels have limits of their own.
        """
        found, said = None, "do not fit the memory"
        try:
            found = trial.size(number, _SIZE_SECONDS)
        except TrialError as error:
            if not self._runs:
                raise
            said = str(error)
        if found is not None:
            self._runs = True
            said = f"{found.tokens_per_second:,.0f} tokens/s, {gib(found.peak_bytes)}"
        self._say(f"trying batch.micro_rows: {number} rows at a time: {said}")
        return found

    def _spec(self, rows: int) -> TrialSpec:
        device = self.accelerator.device
        local = int(os.environ.get("LOCAL_WORLD_SIZE", self.accelerator.num_processes))
        share = _GPU_SHARE if device.type == "cuda" else _CPU_SHARE / local
        share /= self.sharing
        scratch = self.scratch / f"process-{self.accelerator.process_index}"
        scratch.mkdir(parents=True, exist_ok=True)
        return TrialSpec(
            config=replace(
                self.config, transplant=None, batch=replace(self.config.batch, rows=rows)
            ),
            corpus=self.corpus.folder,
            scratch=scratch,
            steps=self.steps,
            num_threads=torch.get_num_threads(),
            max_bytes=int(share * free_memory(device)),
            num_processes=self.accelerator.num_processes,
        )

    def on_all(self, do: Callable[[], T]) -> list[T]:
        """What every process gets, for all; the error of one is an error of all.

        Raises:
            IsoglotError: the first one.
        """
        own: list[T | IsoglotError]
        try:
            own = [do()]
        except IsoglotError as error:
            own = [error]
        wait_for_all(self.accelerator)
        together: list[T | IsoglotError] = gather_object(own)
        found: list[T] = []
        for one in together:
            if isinstance(one, IsoglotError):
                raise one
            found.append(one)
        return found

    def _say(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True)


def first_rows(row_length: int, whole: int, *, on_gpu: bool, twice: bool) -> int:
    """The rows at a time that are tried first.

    Where an objective encodes the parts of a step twice, a GPU begins with the `whole` step of a
    process: in one piece it is encoded once, which nearly always wins.
    """
    rows = max(1, (_GPU_TOKENS if on_gpu else _CPU_TOKENS) // row_length)
    return min(whole, _WHOLE_STEP * rows) if on_gpu and twice else rows


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])
