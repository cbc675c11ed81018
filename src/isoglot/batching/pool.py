"""Draws looked up in the length index: what the planner needs to place them, and no text yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.batching.mixture import sequence_lengths
from isoglot.types import FloatArray, IntArray, LongArray

if TYPE_CHECKING:
    from isoglot.batching.mixture import Cell, Mixture


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Draws looked up: what is needed to place them."""

    cells: LongArray
    counters: LongArray
    examples: LongArray
    chances: FloatArray
    starts: LongArray
    groups: IntArray
    lengths: IntArray
    targets: IntArray
    tokens: LongArray
    """Tokens that each draw takes up in the main rows."""

    def __getitem__(self, chosen: LongArray | slice) -> Pool:
        """Some of the draws, in the order asked for."""
        draws = np.arange(len(self.cells))[chosen]
        per_draw = np.diff(self.starts)[draws]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_draw)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], per_draw)
        sequences = np.repeat(self.starts[draws], per_draw) + within
        return Pool(
            cells=self.cells[draws],
            counters=self.counters[draws],
            examples=self.examples[draws],
            chances=self.chances[draws],
            starts=starts,
            groups=self.groups[sequences],
            lengths=self.lengths[sequences],
            targets=self.targets[draws],
            tokens=self.tokens[draws],
        )


class Lookup:
    """Turns (cell, counter) draws into a pool."""

    def __init__(self, mixture: Mixture, side_groups: dict[str, int]) -> None:
        self.mixture, self.side_groups = mixture, side_groups

    def __call__(self, cells: LongArray, counters: LongArray) -> Pool:
        """What is needed to place these draws."""
        examples = np.zeros(len(cells), np.int64)
        chances = np.zeros(len(cells))
        targets = np.zeros(len(cells), np.int32)
        per_draw = np.zeros(len(cells), np.int64)
        rows: list[tuple[LongArray, IntArray, IntArray]] = []
        for number in np.unique(cells):
            chosen = np.flatnonzero(cells == number)
            cell = self.mixture.cells[number]
            examples[chosen] = cell.indices(counters[chosen])
            chances[chosen] = cell.chances(counters[chosen])
            sizes = cell.sizes(examples[chosen], chances[chosen])
            lengths = sequence_lengths(cell.makers, sizes)
            targets[chosen] = sum(maker.max_targets(sizes) for _, maker in cell.makers)
            per_draw[chosen] = lengths.shape[1]
            rows.append((chosen, lengths, self._groups_of(cell, sizes)))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_draw)])
        lengths_of = np.zeros(starts[-1], np.int32)
        groups_of = np.zeros(starts[-1], np.int32)
        for chosen, lengths, groups in rows:
            places = starts[chosen][:, None] + np.arange(lengths.shape[1])
            lengths_of[places] = lengths
            groups_of[places] = groups
        main = np.where(groups_of == 0, lengths_of, 0)
        tokens = np.add.reduceat(np.append(main, 0), starts[:-1]) if len(cells) else per_draw
        return Pool(
            cells=cells,
            counters=counters,
            examples=examples,
            chances=chances,
            starts=starts,
            groups=groups_of,
            lengths=lengths_of,
            targets=targets,
            tokens=tokens.astype(np.int64),
        )

    def _groups_of(self, cell: Cell, sizes: IntArray) -> IntArray:
        """The group of rows of each sequence of a draw: 0, or that of its objective's side rows."""
        groups: list[int] = []
        for name, maker in cell.makers:
            number = maker.lengths(sizes[:1]).shape[1]
            groups += [0] * (number - maker.num_side)
            groups += [self.side_groups.get(name, 0)] * maker.num_side
        return np.array(groups, np.int32)


def count_up(cells: LongArray, counters: LongArray) -> LongArray:
    """The counter of each draw, given the counters before the first of them."""
    order = np.argsort(cells, kind="stable")
    ranked = cells[order]
    rank = np.arange(len(cells)) - np.searchsorted(ranked, ranked, "left")
    found = np.empty_like(cells)
    found[order] = rank
    return found + counters[cells]


def joined(first: Pool, second: Pool) -> Pool:
    """Two pools, one after the other."""
    parts = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in Pool.__dataclass_fields__
        if name != "starts"
    }
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    return Pool(starts=starts, **parts)
