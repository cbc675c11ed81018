"""From a cursor to the plan of a step: which draws, in which micro-batch, row and offset.

Plans come from the length index alone, so every process plans the whole step (milliseconds, and
linear in its draws) and builds only its own micro-batches: one, two or eight processes see the same
global batch. The loader plans a step ahead, in a thread.

    cursor --draw--> draws --look up--> lengths --pack--> micro-batch plans + the next cursor
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
from numba import njit

from isoglot.batching.draws import DrawLookup, DrawPool, PendingDraws, draw_numbers
from isoglot.batching.packing import pack
from isoglot.corpus.storage.grouping import ascending_order
from isoglot.ranges import Range, check_ranges
from isoglot.types import Cursor, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.batching.mixture import Component, Mixture
    from isoglot.batching.schedules import BatchWarmup

_NO_LIMIT = 2**62
_DRAWS_PER_LOOKUP = 2048
"""Draws looked up at a time, at least: single look-ups would be slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """The shape of a step."""

    row_length: Annotated[int, Range(8, 2**17)] = 256
    """Tokens of a row: the longest sequence possible."""
    rows: Annotated[int, Range(1, 2**17)] = 64
    """Rows of one optimizer step, over all processes."""
    micro_rows: Annotated[int | Literal["auto"], Range(1, 2**17)] = 16
    """Rows encoded at a time on one process, as its memory allows; auto: the fastest number that
    fits, found by trial before the run (docs/speed.md)."""
    lookahead: Annotated[float, Range(0, 10)] = 0.1
    """Draws taken beyond what a step holds, as a share of it, so that rows can be filled well."""
    pad_targets: bool | None = None
    """Pad the list of target positions to a fixed size (for compiled models); none: on a GPU."""

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def micro_batch_rows(self) -> int:
        """`micro_rows` as a number; a run replaces `auto` by one before it plans any batch."""
        assert self.micro_rows != "auto", "micro_rows: auto has not been resolved"
        return self.micro_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchPlan:
    """One micro-batch to build: its draws, and the place of each of their sequences."""

    draws: DrawPool
    rows: LongArray
    """The row of each sequence."""
    offsets: LongArray
    """The place of its first token in the row."""
    cursor: Cursor = field(default_factory=Cursor)
    """The state of the data after this micro-batch's step."""
    step: int = 0
    """The step of the stage that it belongs to, from 0."""


class Placement(NamedTuple):
    """Where the draws of a pool are."""

    micro_batches: LongArray
    """The micro-batch of each draw, -1 if it was not placed."""
    rows: LongArray
    """The row of each sequence."""
    offsets: LongArray
    """The place of its first token in the row."""


@dataclass(slots=True, kw_only=True)
class _KnownDraws:
    """Draws looked up so far: those that a cursor has pending, and those that follow it."""

    cursor: Cursor
    pending: DrawPool
    following: DrawPool


class Planner:
    """Plans the steps of one stage. A plan depends on its cursor alone; look-ups are cached."""

    def __init__(
        self,
        mixture: Mixture,
        shape: BatchConfig,
        *,
        target_capacity: int | None,
        warmup: BatchWarmup | None = None,
    ) -> None:
        """`warmup`: fewer rows in the first steps."""
        self.mixture, self.shape, self.micro_rows = mixture, shape, shape.micro_batch_rows
        self.target_capacity, self._warmup = target_capacity, warmup
        self._known: _KnownDraws | None = None
        with_aux = (
            name
            for component in mixture.components
            for name, objective in component.objectives
            if objective.num_aux_sequences
        )
        self.aux_groups = {name: number for number, name in enumerate(dict.fromkeys(with_aux), 1)}
        self.num_aux_rows = self._count_aux_rows()
        self._lookup = DrawLookup(mixture, self.aux_groups)

    def num_micro(self, step: int) -> int:
        """Micro-batches of a step of the stage, from 0, on all processes together."""
        rows = self.shape.rows
        return (rows if self._warmup is None else self._warmup.at(step, rows)) // self.micro_rows

    def num_rows(self, steps: int) -> int:
        """Rows of the first steps of the stage together."""
        rows = self.shape.rows
        return rows * steps if self._warmup is None else self._warmup.total(steps, rows)

    def _wanted_tokens(self, step: int) -> float:
        """Tokens of the draws that a step chooses from."""
        tokens = self.num_micro(step) * self.micro_rows * self.shape.row_length
        return tokens * (1 + self.shape.lookahead) + 2 * self.shape.row_length

    def steps(
        self, cursor: Cursor, *, rank: int = 0, world: int = 1
    ) -> Iterator[list[MicroBatchPlan]]:
        """The plans of all steps that follow a cursor, without end; see `plan`."""
        while True:
            plans = self.plan(cursor, rank=rank, world=world)
            cursor = plans[0].cursor
            yield plans

    def plan(self, cursor: Cursor, *, rank: int = 0, world: int = 1) -> list[MicroBatchPlan]:
        """The micro-batches of the step after a cursor that belong to one of `world` processes.

        Micro-batch m belongs to process m mod world.
        """
        known = self._look_up(cursor)
        num_micro = self.num_micro(cursor.step)
        short = self._wanted_tokens(cursor.step) - known.pending.tokens.sum()
        new = 0
        if short > 0:
            new = int(np.searchsorted(np.cumsum(known.following.tokens), short)) + 1
        pool = known.pending.join(known.following[:new])
        num_pending = len(cursor.pending)
        # pending draws first; of each kind, the longest first
        shorter = pool.tokens.max(initial=0) - pool.tokens
        old, fresh = ascending_order(shorter[:num_pending]), ascending_order(shorter[num_pending:])
        placement = self._place(pool, np.concatenate([old, num_pending + fresh]), num_micro)
        unplaced = placement.micro_batches < 0
        assert not unplaced.all(), "a step that places nothing would never end"
        counters = self._counters_of(cursor, pool.components[num_pending:])
        remaining = pool[np.flatnonzero(unplaced)]
        following = Cursor(
            step=cursor.step + 1,
            counters=tuple(counters.tolist()),
            pending=PendingDraws(remaining.components, remaining.counters),
        )
        # where alpha is annealed, the next step's draws have probabilities of their own
        taken = len(known.following.components) if self.mixture.anneals else new
        self._known = _KnownDraws(
            cursor=following,
            pending=remaining,
            following=known.following[taken:],
        )
        numbers = range(rank, num_micro, world)
        return _make_plans(pool, placement, numbers, cursor=following)

    def single_pass(self, max_examples: int) -> Iterator[MicroBatchPlan]:
        """Every example of every component once, at most `max_examples` each: for validation."""
        num_micro = self.shape.rows // self.micro_rows
        numbers = [min(max_examples, one.num_examples) for one in self.mixture.components]
        components = np.repeat(np.arange(len(numbers)), numbers)
        counters = np.concatenate([np.arange(number) for number in numbers])
        while len(components):
            # only draws that can be placed are looked up: the whole pass stays linear
            window = min(len(components), self.shape.rows * self.shape.row_length // 2)
            pool = self._lookup(components[:window], counters[:window])
            shorter = pool.tokens.max(initial=0) - pool.tokens
            placement = self._place(pool, ascending_order(shorter), num_micro)
            unplaced = placement.micro_batches < 0
            assert not unplaced.all(), "a pass that places nothing would never end"
            plans = _make_plans(pool, placement, range(num_micro))
            yield from (plan for plan in plans if len(plan.draws.components))
            components = np.concatenate([pool.components[unplaced], components[window:]])
            counters = np.concatenate([pool.counters[unplaced], counters[window:]])

    def _look_up(self, cursor: Cursor) -> _KnownDraws:
        """The pending draws of a cursor, and enough new ones for a step and the lookahead."""
        known = self._known
        if known is None or known.cursor != cursor:
            none = np.zeros(0, np.int64)
            known = _KnownDraws(
                cursor=cursor,
                pending=self._lookup(*draw_numbers(cursor.pending)),
                following=self._lookup(none, none),
            )
        wanted = self._wanted_tokens(cursor.step)
        while True:
            tokens = int(known.pending.tokens.sum() + known.following.tokens.sum())
            if tokens >= wanted:
                break
            counters = self._counters_of(cursor, known.following.components)
            first = cursor.draws + len(known.following.components)
            short = int((wanted - tokens) / self.mixture.tokens_per_draw)
            components = self.mixture.draw_components(
                first, max(short, _DRAWS_PER_LOOKUP), step=cursor.step
            )
            more = self._lookup(components, count_draws(components, counters))
            known = replace(known, following=known.following.join(more))
        return known

    def _counters_of(self, cursor: Cursor, components: LongArray) -> LongArray:
        """Draws taken from each component: those of the cursor, and these."""
        counters = np.zeros(len(self.mixture.components), np.int64)
        counters[: len(cursor.counters)] = cursor.counters
        return counters + np.bincount(components, minlength=len(counters))

    def _count_aux_rows(self) -> dict[str, int]:
        """Auxiliary rows of a micro-batch, from the mean lengths, with an eighth to spare."""
        rows: dict[str, int] = {}
        total = sum(stream.config.share for stream in self.mixture.streams)
        for number, stream in enumerate(self.mixture.streams):
            components = [one for one in self.mixture.components if one.stream == number]
            for name, objective in stream.objectives:
                read = [one for one in components if (name, objective) in one.objectives]
                if objective.num_aux_sequences and read:
                    sizes = np.concatenate([one.sample_sizes(512) for one in read])
                    aux = objective.lengths(sizes)[:, -objective.num_aux_sequences :].sum()
                    main = stream.lengths(sizes)[:, stream.in_main_rows()].sum()
                    share = self._share_of(read, components) * stream.config.share / total
                    wanted = 1 + int(1.125 * self.micro_rows * share * aux / main)
                    rows[name] = rows.get(name, 0) + max(wanted, objective.num_aux_sequences)
        return rows

    def _share_of(self, some: list[Component], components: list[Component]) -> float:
        """The share of the draws from these components that comes from some of them, at most."""
        if len(some) == len(components):
            return 1.0
        numbers = {one: number for number, one in enumerate(self.mixture.components)}
        part, whole = ([numbers[one] for one in of] for of in (some, components))
        mixture = self.mixture
        return max(
            float(one[part].sum()) / float(one[whole].sum())
            for one in (mixture.probabilities, mixture.last_probabilities)
        )

    def _place(self, pool: DrawPool, order: LongArray, num_micro: int) -> Placement:
        """A micro-batch for each draw, as long as there is room, and the places of sequences."""
        max_rows = max([self.micro_rows, *self.num_aux_rows.values()])
        room = np.zeros((num_micro, 1 + len(self.aux_groups), max_rows), np.int64)
        room[:, 0, : self.micro_rows] = self.shape.row_length
        for name, group in self.aux_groups.items():
            room[:, group, : self.num_aux_rows[name]] = self.shape.row_length
        targets = _NO_LIMIT if self.target_capacity is None else self.target_capacity
        found = pack(
            order,
            pool.starts,
            pool.groups,
            pool.lengths,
            pool.targets,
            room,
            np.full(num_micro, targets, np.int64),
            self.shape.row_length,
        )
        return Placement(*found)


def _make_plans(
    pool: DrawPool, placement: Placement, numbers: range, *, cursor: Cursor | None = None
) -> list[MicroBatchPlan]:
    """The plans of some micro-batches; the others' are not made."""
    micro = placement.micro_batches
    own = np.flatnonzero((micro >= numbers.start) & ((micro - numbers.start) % numbers.step == 0))
    own = own[ascending_order(micro[own])]
    draws, sequences = pool[own], pool.sequences_of(own)
    rows, offsets = placement.rows[sequences], placement.offsets[sequences]
    ends = np.searchsorted(micro[own], np.array(numbers), "right").tolist()
    plans, first = [], 0
    for last in ends:
        part = slice(int(draws.starts[first]), int(draws.starts[last]))
        plans.append(
            MicroBatchPlan(
                draws=draws[first:last],
                rows=rows[part],
                offsets=offsets[part],
                cursor=Cursor() if cursor is None else cursor,
                step=0 if cursor is None else cursor.step - 1,
            )
        )
        first = last
    return plans


@njit(cache=True, nogil=True)
def count_draws(
    components: LongArray, counters: LongArray
) -> LongArray:  # pragma: no cover - compiled
    """The counter of each draw, given the counters of the components before the first draw."""
    taken = counters.copy()
    found = np.empty_like(components)
    for draw in range(len(components)):
        found[draw] = taken[components[draw]]
        taken[components[draw]] += 1
    return found
