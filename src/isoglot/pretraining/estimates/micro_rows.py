"""`batch.micro_rows: auto`: which number of rows at a time is fastest, and fits the memory.

Sizes are tried by running steps, from a small one upwards, each about four times the one before,
until memory ends or they get slower; then sizes between the best one and its neighbors. Each size
is compiled on a GPU, half a minute, so few are tried. More is not always faster.
Only sizes that divide a step evenly are tried. This file decides what to try next; `trial.py` runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from isoglot.errors import IsoglotError
from isoglot.objectives.contrast.pooling import ContrastObjective
from isoglot.pretraining.memory import gib

if TYPE_CHECKING:
    from isoglot.objectives.base import Objective

_EQUAL = 0.01
"""Sizes whose speeds differ by less are as fast; the smallest of them is taken."""
_CLIMB = 4
"""On the way up, a size is at most so many times the one before."""
_NEAR = 1.25
"""Sizes of at most this ratio are near enough: none between them is tried."""
_GAIN = 0.02
"""A size that is faster than the best by less is no reason to go on."""
_SLOWER = 0.05
"""A size that is slower than the best by more than this ends the way up."""


class DoesNotFitError(IsoglotError):
    """A step does not fit the memory; `largest` rows at a time do (0: not even the smallest)."""

    def __init__(self, message: str, largest: int = 0) -> None:
        super().__init__(message)
        self.largest = largest


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTrial:
    """What a number of rows at a time was measured to take."""

    micro_rows: int
    tokens_per_second: float
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroRows:
    """The number of rows at a time of a run, and why."""

    number: int
    reason: str
    trials: tuple[SizeTrial, ...] = ()


def possible_sizes(rows: int, num_processes: int, smallest: int = 1) -> list[int]:
    """The numbers of rows that divide a process's part of a step, ascending.

    Raises:
        IsoglotError: the rows do not divide by the processes, or none is large enough.
    """
    own, rest = divmod(rows, num_processes)
    if rest:
        raise IsoglotError(
            f"batch.rows = {rows} does not divide into parts for {num_processes} processes. Choose "
            f"batch.rows as a multiple of {num_processes}."
        )
    found = [size for size in range(smallest, own + 1) if own % size == 0]
    if not found:
        raise IsoglotError(
            f"batch.rows = {rows} on {num_processes} processes is {own} rows each, and a draw "
            f"makes {smallest} sequences: choose batch.rows as {smallest * num_processes} or more."
        )
    return found


def split_sensitive(objectives: Mapping[str, Objective]) -> list[str]:
    """The objectives whose loss depends on how a step is split."""
    return [name for name, one in objectives.items() if one.compares_examples()]


def encoded_twice(objectives: Mapping[str, Objective]) -> bool:
    """Does an objective encode every micro-batch twice where a step has several?

    One that compares the examples of a whole step does, as its loss would depend on the split if it
    compared those of a micro-batch.
    """
    return any(
        isinstance(one, ContrastObjective)
        and one.negatives == "step"
        and replace(one, negatives="micro_batch").compares_examples()
        for one in objectives.values()
    )


@dataclass(slots=True, kw_only=True)
class Search:
    """The search of one process; `best` is its result."""

    sizes: Sequence[int]
    """What may be tried, ascending."""
    run: Callable[[int], SizeTrial | None]
    """Tries a size; none: it does not fit."""
    seconds: float
    """No new size is tried after this time."""
    max_bytes: int | None = None
    """Peak above which a size is not tried, as extrapolated from smaller ones; none: no limit."""
    clock: Callable[[], float] = time.monotonic
    trials: dict[int, SizeTrial | None] = field(default_factory=dict)
    """What was tried, or left out as too large (none), by size."""

    def best(self, first: int) -> MicroRows:
        """The fastest size that fits; the first one tried is the size nearest to `first`.

        Raises:
            DoesNotFitError: not even the smallest size fits.
        """
        end = self.clock() + self.seconds
        size = min(self.sizes, key=lambda one: abs(one - first))
        while self._try(size) is None:
            if size == self.sizes[0]:
                raise DoesNotFitError(
                    f"batch.micro_rows: auto: not even {size} row at a time fits the memory. Take "
                    "a smaller model, a shorter batch.row_length, or a machine with more memory.",
                    largest=0,
                )
            size = self._below(size)
        self._climb(size, end)
        self._refine_above(end)
        if self._fastest() == size:
            self._descend(size, end)
        self._try_between(*self._around()[:2], end)
        return self._choice()

    def _try(self, size: int) -> SizeTrial | None:
        if size not in self.trials:
            self.trials[size] = None if self._too_large(size) else self.run(size)
        return self.trials[size]

    def _too_large(self, size: int) -> bool:
        if any(found is None and failed <= size for failed, found in self.trials.items()):
            return True
        known = sorted(self._fitting(), key=lambda one: one.micro_rows)[-2:]
        if self.max_bytes is None or len(known) < 2:
            return False
        low, high = known
        rows = high.micro_rows - low.micro_rows
        slope = max(high.peak_bytes - low.peak_bytes, 0) / rows
        return high.peak_bytes + slope * (size - high.micro_rows) > self.max_bytes

    def _fitting(self) -> list[SizeTrial]:
        return [found for found in self.trials.values() if found is not None]

    def _fastest(self) -> int:
        return max(self._fitting(), key=lambda one: one.tokens_per_second).micro_rows

    def _climb(self, size: int, end: float) -> None:
        """Try larger sizes until one does not fit or is clearly slower."""
        without_gain = 0
        while size != self.sizes[-1] and self.clock() < end:
            before = self.trials[self._fastest()]
            size = self._above(size)
            found = self._try(size)
            if found is None or before is None:
                return
            change = found.tokens_per_second / before.tokens_per_second - 1
            without_gain = 0 if change > _GAIN else without_gain + 1
            if change < -_SLOWER or without_gain == 2:
                return

    def _descend(self, size: int, end: float) -> None:
        """Try smaller sizes as long as they are faster."""
        while size != self.sizes[0] and self.clock() < end:
            before, size = self.trials[size], self._below(size)
            found = self._try(size)
            if found is None or before is None:
                return
            if found.tokens_per_second < before.tokens_per_second:
                return

    def _refine_above(self, end: float) -> None:
        """Try sizes between the fastest and the next one above it, until the two are near."""
        while True:
            _, fastest, above = self._around()
            if above <= _NEAR * fastest:
                return
            found = self._try_between(fastest, above, end)
            if found is None or (self.trials[found] is not None and self._fastest() == fastest):
                return

    def _try_between(self, low: int, high: int, end: float) -> int | None:
        """Try the size in the middle of two, on a scale of ratios; none: there is no such size."""
        between = [size for size in self.sizes if low < size < high]
        if not between or self.clock() >= end:
            return None
        size = min(between, key=lambda size: abs(size * size - low * high))
        self._try(size)
        return size

    def _around(self) -> tuple[int, int, int]:
        """The fastest size between its neighbors among those tried; at an end, itself."""
        tried = sorted(self.trials)
        place = tried.index(self._fastest())
        return tried[max(place - 1, 0)], tried[place], tried[min(place + 1, len(tried) - 1)]

    def _above(self, size: int) -> int:
        larger = [one for one in self.sizes if one > size]
        return max([one for one in larger if one <= _CLIMB * size], default=larger[0])

    def _below(self, size: int) -> int:
        smaller = [one for one in self.sizes if one < size]
        return min([one for one in smaller if 2 * one >= size], default=smaller[-1])

    def _choice(self) -> MicroRows:
        trials = sorted(self._fitting(), key=lambda one: one.micro_rows)
        highest = max(one.tokens_per_second for one in trials)
        chosen = next(one for one in trials if one.tokens_per_second >= (1 - _EQUAL) * highest)
        speeds = ", ".join(f"{one.micro_rows}: {one.tokens_per_second:,.0f}" for one in trials)
        failed = sorted(size for size, found in self.trials.items() if found is None)
        beyond = f"; {failed[0]} rows do not fit the memory" if failed else ""
        reason = f"tokens/s by rows at a time: {speeds}{beyond}; {gib(chosen.peak_bytes)} at most"
        return MicroRows(number=chosen.micro_rows, reason=reason, trials=tuple(trials))


def in_one_piece(search: Search, names: Sequence[str]) -> MicroRows:
    """The whole step of a process at a time, for objectives that compare its examples.

    Raises:
        DoesNotFitError: it does not fit; another split would be another loss.
    """
    whole = search.sizes[-1]
    found = search.run(whole)
    if found is not None:
        reason = (
            f"{' and '.join(names)} compares the examples of a micro-batch, so a process's part of "
            f"a step stays in one piece; {gib(found.peak_bytes)} at most"
        )
        return MicroRows(number=whole, reason=reason, trials=(found,))
    largest = next((size for size in reversed(search.sizes[:-1]) if search.run(size)), 0)
    raise DoesNotFitError(
        f"batch.micro_rows: auto: {' and '.join(names)} compares the examples of a micro-batch, so "
        f"that another split would change the loss, and {whole} rows do not fit the memory at once "
        f"({largest} do). Lower batch.rows, or choose the number of candidates yourself: "
        f"batch.micro_rows={largest or 1}.",
        largest=largest,
    )
