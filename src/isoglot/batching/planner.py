"""From a cursor to the plan of a step: which draws, in which micro-batch, row and place.

Plans come from the length index alone, so every process plans the whole step (milliseconds) and
builds only its own micro-batches: one, two or eight processes see the same global batch.

    cursor --draw--> draws --sizes--> lengths --pack--> micro-batch plans + the next cursor
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isoglot.batching.packing import pack
from isoglot.batching.pool import Lookup, Pool, count_up, joined
from isoglot.errors import require
from isoglot.types import Cursor, Draw, FloatArray, IntArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.batching.mixture import Cell, Mixture

_NO_LIMIT = 2**62
_AT_A_TIME = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """The shape of a step."""

    row_length: int = 256
    """Tokens of a row: the longest sequence possible."""
    rows: int = 64
    """Rows of one optimizer step, over all processes."""
    micro_rows: int = 16
    """Rows encoded at a time on one process: what fits into its memory."""
    lookahead: float = 0.1
    """Draws taken beyond what a step holds, as a share of it, so that rows can be filled well."""
    fixed_sites: bool | None = None
    """Pad the list of prediction sites to a fixed size (for compiled models); none: on a GPU."""

    def __post_init__(self) -> None:
        require(self.row_length >= 8, "batch.row_length must be 8 or more")
        require(self.rows >= 1, "batch.rows must be 1 or more")
        require(self.micro_rows >= 1, "batch.micro_rows must be 1 or more")
        require(self.lookahead >= 0, "batch.lookahead must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroPlan:
    """One micro-batch to build: draws, and where each of their sequences goes."""

    cells: LongArray
    counters: LongArray
    examples: LongArray
    chances: FloatArray
    starts: LongArray
    """Draw d owns the sequences starts[d] .. starts[d + 1]."""
    rows: LongArray
    offsets: LongArray
    lengths: IntArray
    cursor: Cursor
    """Where the data goes on after this micro-batch's step."""


@dataclass(slots=True, kw_only=True)
class _Known:
    """What was looked up already: a cursor, its waiting draws, and the draws that follow it."""

    cursor: Cursor
    waiting: Pool
    following: Pool


class Planner:
    """Plans steps for one stage. What it remembers only saves look-ups: plans depend on cursors."""

    def __init__(self, mixture: Mixture, shape: BatchConfig, *, site_capacity: int | None) -> None:
        self.mixture, self.shape, self.micro_rows = mixture, shape, shape.micro_rows
        self.num_micro = shape.rows // shape.micro_rows
        self.site_capacity = site_capacity
        tokens = shape.rows * shape.row_length
        self._wanted = tokens * (1 + shape.lookahead) + 2 * shape.row_length
        self._known: _Known | None = None
        sided = (name for c in mixture.cells for name, maker in c.makers if maker.num_side)
        self.side_groups = {name: number for number, name in enumerate(dict.fromkeys(sided), 1)}
        self.side_rows = self._side_rows()
        self._lookup = Lookup(mixture, self.side_groups)

    def steps(self, cursor: Cursor) -> Iterator[list[MicroPlan]]:
        """The plans of all steps that follow a cursor, without end."""
        while True:
            plans = self.plan(cursor)
            cursor = plans[0].cursor
            yield plans

    def plan(self, cursor: Cursor) -> list[MicroPlan]:
        """The micro-batches of the step after a cursor."""
        known = self._look_up(cursor)
        new = self._needed(known)
        pool = joined(known.waiting, known.following[:new])
        waiting = len(cursor.pending)
        order = np.concatenate(
            [
                np.argsort(-pool.tokens[:waiting], kind="stable"),
                waiting + np.argsort(-pool.tokens[waiting:], kind="stable"),
            ]
        )
        plans, left = self._place(pool, order)
        assert not left.all(), "a step that places nothing would never end"
        counters = np.zeros(len(self.mixture.cells), np.int64)
        counters[: len(cursor.counters)] = cursor.counters
        counters += np.bincount(pool.cells[waiting:], minlength=len(counters))
        remaining = pool[np.flatnonzero(left)]
        following = Cursor(
            step=cursor.step + 1,
            counters=tuple(counters.tolist()),
            pending=tuple(
                Draw(cell, counter)
                for cell, counter in zip(
                    remaining.cells.tolist(), remaining.counters.tolist(), strict=True
                )
            ),
        )
        self._known = _Known(cursor=following, waiting=remaining, following=known.following[new:])
        return [replace(plan, cursor=following) for plan in plans]

    def once(self, most: int) -> Iterator[MicroPlan]:
        """Every example of every cell once, at most `most` a cell: for validation."""
        cells = np.concatenate(
            [
                np.full(min(most, cell.num_examples), number)
                for number, cell in enumerate(self.mixture.cells)
            ]
        )
        counters = np.concatenate(
            [np.arange(min(most, cell.num_examples)) for cell in self.mixture.cells]
        )
        while len(cells):
            # only what can be placed is looked at: a pass over all stays linear
            window = min(len(cells), self.shape.rows * self.shape.row_length // 2)
            pool = self._lookup(cells[:window], counters[:window])
            plans, left = self._place(pool, np.argsort(-pool.tokens, kind="stable"))
            assert not left.all(), "a pass that places nothing would never end"
            yield from (plan for plan in plans if len(plan.cells))
            cells = np.concatenate([pool.cells[left], cells[window:]])
            counters = np.concatenate([pool.counters[left], counters[window:]])

    def _look_up(self, cursor: Cursor) -> _Known:
        """The waiting draws of a cursor, and enough new ones to fill a step and the lookahead."""
        known = self._known
        if known is None or known.cursor != cursor:
            waiting = np.array(cursor.pending, np.int64).reshape(-1, 2)
            none = np.zeros(0, np.int64)
            known = _Known(
                cursor=cursor,
                waiting=self._lookup(waiting[:, 0], waiting[:, 1]),
                following=self._lookup(none, none),
            )
        while known.waiting.tokens.sum() + known.following.tokens.sum() < self._wanted:
            # look-ups are quick by the thousand and slow one by one
            counters = np.zeros(len(self.mixture.cells), np.int64)
            counters[: len(cursor.counters)] = cursor.counters
            counters += np.bincount(known.following.cells, minlength=len(counters))
            cells = self.mixture.cells_of(cursor.draws + len(known.following.cells), _AT_A_TIME)
            more = self._lookup(cells, count_up(cells, counters))
            known = replace(known, following=joined(known.following, more))
        return known

    def _needed(self, known: _Known) -> int:
        """How many of the draws that follow are taken for this step."""
        short = self._wanted - known.waiting.tokens.sum()
        if short <= 0:
            return 0
        return int(np.searchsorted(np.cumsum(known.following.tokens), short)) + 1

    def _side_rows(self) -> dict[str, int]:
        """Side rows a micro-batch needs, from the mean lengths, with an eighth to spare."""
        rows: dict[str, int] = {}
        total = sum(stream.config.share for stream in self.mixture.streams)
        for number, stream in enumerate(self.mixture.streams):
            cells = [cell for cell in self.mixture.cells if cell.stream == number]
            for name, maker in stream.makers:
                read = [cell for cell in cells if (name, maker) in cell.makers]
                if maker.num_side and read:
                    sizes = np.concatenate([cell.sample(512) for cell in read])
                    side = maker.lengths(sizes)[:, -maker.num_side :].sum()
                    main = stream.lengths(sizes)[:, stream.main()].sum()
                    share = self._part(read, cells) * stream.config.share / total
                    wanted = 1 + int(1.125 * self.micro_rows * share * side / main)
                    rows[name] = rows.get(name, 0) + max(wanted, maker.num_side)
        return rows

    def _part(self, some: list[Cell], cells: list[Cell]) -> float:
        """The part of the draws from these cells that comes from some of them."""
        if len(some) == len(cells):
            return 1.0
        numbers = {cell: number for number, cell in enumerate(self.mixture.cells)}
        part, whole = (
            float(self.mixture.probabilities[[numbers[cell] for cell in of]].sum())
            for of in (some, cells)
        )
        return part / whole

    def _place(self, pool: Pool, order: LongArray) -> tuple[list[MicroPlan], np.ndarray]:
        most_rows = max([self.micro_rows, *self.side_rows.values()])
        room = np.zeros((self.num_micro, 1 + len(self.side_groups), most_rows), np.int64)
        room[:, 0, : self.micro_rows] = self.shape.row_length
        for name, group in self.side_groups.items():
            room[:, group, : self.side_rows[name]] = self.shape.row_length
        sites = _NO_LIMIT if self.site_capacity is None else self.site_capacity
        micro_of, row_of, offset_of = pack(
            order,
            pool.starts,
            pool.groups,
            pool.lengths,
            pool.targets,
            room,
            np.full(self.num_micro, sites, np.int64),
            self.shape.row_length,
        )
        owner = np.repeat(micro_of, np.diff(pool.starts))
        plans = []
        for number in range(self.num_micro):
            draws = np.flatnonzero(micro_of == number)
            placed = pool[draws]
            sequences = np.flatnonzero(owner == number)
            plans.append(
                MicroPlan(
                    cells=placed.cells,
                    counters=placed.counters,
                    examples=placed.examples,
                    chances=placed.chances,
                    starts=placed.starts,
                    rows=row_of[sequences],
                    offsets=offset_of[sequences],
                    lengths=placed.lengths,
                    cursor=Cursor(),
                )
            )
        return plans, micro_of < 0
