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
from isoglot.types import Cursor, Draw, IntArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.batching.mixture import Mixture

_NO_LIMIT = 2**62


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroPlan:
    """One micro-batch to build: draws, and where each of their sequences goes."""

    cells: LongArray
    counters: LongArray
    examples: LongArray
    starts: LongArray
    """Draw d owns the sequences starts[d] .. starts[d + 1]."""
    rows: LongArray
    offsets: LongArray
    lengths: IntArray
    cursor: Cursor
    """Where the data goes on after this micro-batch's step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Draws on the table while a step is planned."""

    cells: LongArray
    counters: LongArray
    examples: LongArray
    starts: LongArray
    groups: IntArray
    lengths: IntArray
    targets: IntArray
    tokens: LongArray


class Planner:
    """Plans steps for one stage; has no state of its own."""

    def __init__(
        self, mixture: Mixture, shape: BatchConfig, *, site_capacity: int | None
    ) -> None:
        self.mixture, self.shape, self.micro_rows = mixture, shape, shape.micro_rows
        self.num_micro = shape.rows // shape.micro_rows
        self.site_capacity = site_capacity
        self.side_groups = {
            name: number
            for number, name in enumerate(
                (name for s in mixture.streams for name, maker in s.makers if maker.num_side), 1
            )
        }
        self.side_rows = self._side_rows()

    def steps(self, cursor: Cursor) -> Iterator[list[MicroPlan]]:
        """The plans of all steps that follow a cursor, without end."""
        while True:
            plans = self.plan(cursor)
            cursor = plans[0].cursor
            yield plans

    def plan(self, cursor: Cursor) -> list[MicroPlan]:
        """The micro-batches of the step after a cursor."""
        pool, draws, counters = self._draw(cursor)
        waiting = len(cursor.pending)
        order = np.concatenate(
            [
                np.argsort(-pool.tokens[:waiting], kind="stable"),
                waiting + np.argsort(-pool.tokens[waiting:], kind="stable"),
            ]
        )
        plans, left = self._place(pool, order)
        following = Cursor(
            step=cursor.step + 1,
            draws=draws,
            counters=tuple(counters.tolist()),
            pending=tuple(
                Draw(int(pool.cells[d]), int(pool.counters[d])) for d in np.flatnonzero(left)
            ),
        )
        assert not left.all(), "a step that places nothing would never end"
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
            pool = self._pool(cells[:window], counters[:window])
            plans, left = self._place(pool, np.argsort(-pool.tokens, kind="stable"))
            yield from (plan for plan in plans if len(plan.cells))
            cells = np.concatenate([pool.cells[left], cells[window:]])
            counters = np.concatenate([pool.counters[left], counters[window:]])

    def _draw(self, cursor: Cursor) -> tuple[_Pool, int, LongArray]:
        """Waiting draws and as many new ones as fill a step and the lookahead."""
        capacity = self.shape.rows * self.shape.row_length
        wanted = capacity * (1 + self.shape.lookahead) + 2 * self.shape.row_length
        counters = np.zeros(len(self.mixture.cells), np.int64)
        counters[: len(cursor.counters)] = cursor.counters
        waiting = np.array(cursor.pending, np.int64).reshape(-1, 2)
        pool = self._pool(waiting[:, 0], waiting[:, 1])
        draws = cursor.draws
        number = 64
        while pool.tokens.sum() < wanted:
            cells = self.mixture.cells_of(draws, number)
            drawn = self._pool(cells, _count_up(cells, counters))
            short = wanted - pool.tokens.sum()
            needed = int(np.searchsorted(np.cumsum(drawn.tokens), short)) + 1
            if needed > number:  # all of these are needed, and more
                number = min(2 * number, 65536)
            else:
                drawn = self._pool(cells[:needed], drawn.counters[:needed])
            counters += np.bincount(drawn.cells, minlength=len(counters))
            draws += len(drawn.cells)
            pool = _joined(pool, drawn)
        return pool, draws, counters

    def _pool(self, cells: LongArray, counters: LongArray) -> _Pool:
        """Look up the examples and lengths of draws."""
        examples = np.zeros(len(cells), np.int64)
        targets = np.zeros(len(cells), np.int32)
        per_draw = np.zeros(len(cells), np.int64)
        rows: list[tuple[LongArray, IntArray, IntArray]] = []
        for number in np.unique(cells):
            chosen = np.flatnonzero(cells == number)
            cell = self.mixture.cells[number]
            stream = self.mixture.streams[cell.stream]
            examples[chosen] = cell.indices(counters[chosen])
            sizes = cell.sizes(examples[chosen])
            lengths = stream.lengths(sizes)
            targets[chosen] = sum(maker.max_targets(sizes) for _, maker in stream.makers)
            per_draw[chosen] = lengths.shape[1]
            rows.append((chosen, lengths, self._groups_of(cell.stream, sizes)))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_draw)])
        lengths_of = np.zeros(starts[-1], np.int32)
        groups_of = np.zeros(starts[-1], np.int32)
        for chosen, lengths, groups in rows:
            places = starts[chosen][:, None] + np.arange(lengths.shape[1])
            lengths_of[places] = lengths
            groups_of[places] = groups
        main = np.where(groups_of == 0, lengths_of, 0)
        tokens = np.add.reduceat(np.append(main, 0), starts[:-1]) if len(cells) else per_draw
        return _Pool(
            cells=cells,
            counters=counters,
            examples=examples,
            starts=starts,
            groups=groups_of,
            lengths=lengths_of,
            targets=targets,
            tokens=tokens.astype(np.int64),
        )

    def _groups_of(self, stream: int, sizes: IntArray) -> IntArray:
        """The group of rows of each sequence of a draw: 0, or that of its objective's side rows."""
        groups: list[int] = []
        for name, maker in self.mixture.streams[stream].makers:
            number = maker.lengths(sizes[:1]).shape[1]
            groups += [0] * (number - maker.num_side)
            groups += [self.side_groups.get(name, 0)] * maker.num_side
        return np.array(groups, np.int32)

    def _side_rows(self) -> dict[str, int]:
        """Side rows a micro-batch needs, from the mean lengths, with an eighth to spare."""
        rows: dict[str, int] = {}
        total = sum(stream.config.share for stream in self.mixture.streams)
        for number, stream in enumerate(self.mixture.streams):
            cells = [cell for cell in self.mixture.cells if cell.stream == number]
            for name, maker in stream.makers:
                if maker.num_side:
                    sizes = np.concatenate(
                        [c.sizes(np.arange(min(512, c.num_examples))) for c in cells]
                    )
                    side = maker.lengths(sizes)[:, -maker.num_side :].sum()
                    main = stream.lengths(sizes)[:, stream.main()].sum()
                    share = stream.config.share / total
                    rows[name] = 1 + int(1.125 * self.micro_rows * share * side / main)
        return rows

    def _place(self, pool: _Pool, order: LongArray) -> tuple[list[MicroPlan], np.ndarray]:
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
        plans = []
        for number in range(self.num_micro):
            draws = np.flatnonzero(micro_of == number)
            per_draw = np.diff(pool.starts)[draws]
            starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_draw)])
            within = np.arange(starts[-1]) - np.repeat(starts[:-1], per_draw)
            places = np.repeat(pool.starts[draws], per_draw) + within
            plans.append(
                MicroPlan(
                    cells=pool.cells[draws],
                    counters=pool.counters[draws],
                    examples=pool.examples[draws],
                    starts=starts,
                    rows=row_of[places],
                    offsets=offset_of[places],
                    lengths=pool.lengths[places],
                    cursor=Cursor(),
                )
            )
        return plans, micro_of < 0


def _count_up(cells: LongArray, counters: LongArray) -> LongArray:
    """The counter of each draw, given the counters before the first of them."""
    order = np.argsort(cells, kind="stable")
    ranked = cells[order]
    rank = np.arange(len(cells)) - np.searchsorted(ranked, ranked, "left")
    found = np.empty_like(cells)
    found[order] = rank
    return found + counters[cells]


def _joined(first: _Pool, second: _Pool) -> _Pool:
    parts = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in _Pool.__dataclass_fields__
        if name != "starts"
    }
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    return _Pool(starts=starts, **parts)
