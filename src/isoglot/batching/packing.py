"""Lengths of draws, and how their sequences are packed into rows of one fixed shape.

A draw may give several sequences (a pair read by two objectives, CAMLM's two directions), which
must land in the same micro-batch, so that an objective finds all of them in one forward pass. Main
rows and each objective's auxiliary rows are separate groups of rows. Draws are tried longest first;
each goes to the micro-batch with the most free tokens and, inside it, to the row with the least
room that holds it (best fit). Rows are then 98-99 % full, and micro-batches have similar contents,
which in-batch negatives need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from isoglot.batching.mixture import sequence_lengths
from isoglot.types import FloatArray, IntArray, LongArray

if TYPE_CHECKING:
    from isoglot.batching.mixture import Component, Mixture


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawPool:
    """Draws with the lengths of their sequences: what packing needs, without any text."""

    components: LongArray
    counters: LongArray
    examples: LongArray
    uniforms: FloatArray
    starts: LongArray
    """Draw d owns the sequences starts[d] .. starts[d + 1]."""
    groups: IntArray
    lengths: IntArray
    targets: IntArray
    tokens: LongArray
    """Tokens of each draw in the main rows."""

    def __getitem__(self, chosen: LongArray | slice) -> DrawPool:
        """Some of the draws, in the given order."""
        draws = np.arange(len(self.components))[chosen]
        per_draw = np.diff(self.starts)[draws]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_draw)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], per_draw)
        sequences = np.repeat(self.starts[draws], per_draw) + within
        columns = {
            name: getattr(self, name)[sequences if name in ("groups", "lengths") else draws]
            for name in DrawPool.__dataclass_fields__
            if name != "starts"
        }
        return DrawPool(starts=starts, **columns)

    def join(self, more: DrawPool) -> DrawPool:
        """These draws, then more."""
        columns = {
            name: np.concatenate([getattr(self, name), getattr(more, name)])
            for name in DrawPool.__dataclass_fields__
            if name != "starts"
        }
        starts = np.concatenate([self.starts, self.starts[-1] + more.starts[1:]])
        return DrawPool(starts=starts, **columns)


class DrawLookup:
    """Looks (component, counter) draws up in the length index."""

    def __init__(self, mixture: Mixture, aux_groups: dict[str, int]) -> None:
        self.mixture, self.aux_groups = mixture, aux_groups

    def __call__(self, components: LongArray, counters: LongArray) -> DrawPool:
        """The draws with their examples and lengths."""
        examples = np.zeros(len(components), np.int64)
        uniforms = np.zeros(len(components))
        targets = np.zeros(len(components), np.int32)
        per_draw = np.zeros(len(components), np.int64)
        found: list[tuple[LongArray, IntArray, IntArray]] = []
        for number in np.unique(components):
            chosen = np.flatnonzero(components == number)
            component = self.mixture.components[number]
            examples[chosen] = component.indices(counters[chosen])
            uniforms[chosen] = component.uniforms(counters[chosen])
            sizes = component.sizes(examples[chosen], uniforms[chosen])
            lengths = sequence_lengths(component.objectives, sizes)
            targets[chosen] = sum(o.max_targets(sizes) for _, o in component.objectives)
            per_draw[chosen] = lengths.shape[1]
            found.append((chosen, lengths, self._groups_of(component, sizes)))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_draw)])
        lengths_of = np.zeros(starts[-1], np.int32)
        groups_of = np.zeros(starts[-1], np.int32)
        for chosen, lengths, groups in found:
            places = starts[chosen][:, None] + np.arange(lengths.shape[1])
            lengths_of[places] = lengths
            groups_of[places] = groups
        main = np.where(groups_of == 0, lengths_of, 0)
        tokens = np.add.reduceat(np.append(main, 0), starts[:-1]) if len(components) else per_draw
        return DrawPool(
            components=components,
            counters=counters,
            examples=examples,
            uniforms=uniforms,
            starts=starts,
            groups=groups_of,
            lengths=lengths_of,
            targets=targets,
            tokens=tokens.astype(np.int64),
        )

    def _groups_of(self, component: Component, sizes: IntArray) -> IntArray:
        """The row group of each sequence of a draw: 0, or its objective's auxiliary group."""
        groups: list[int] = []
        for name, objective in component.objectives:
            number = objective.lengths(sizes[:1]).shape[1]
            groups += [0] * (number - objective.num_aux_sequences)
            groups += [self.aux_groups.get(name, 0)] * objective.num_aux_sequences
        return np.array(groups, np.int32)


@njit(cache=True)
def pack(
    order: LongArray,
    starts: LongArray,
    groups: IntArray,
    lengths: IntArray,
    targets: IntArray,
    room: LongArray,
    target_room: LongArray,
    row_length: int,
) -> tuple[LongArray, LongArray, LongArray]:  # pragma: no cover - compiled
    """Place draws into rows, tried in the given order.

    `starts` to `targets` are those of a `DrawPool`; row group 0 are the main rows. `room`
    (micro-batches, groups, rows) has the free tokens, 0 for rows that a group does not have, and
    `target_room` (micro-batches) the free target positions; both are changed in place.

    Gives the micro-batch of each draw (-1: not placed), the row of each sequence, and its offset in
    the row.
    """
    micro_of = np.full(len(starts) - 1, -1, np.int64)
    row_of = np.full(len(lengths), -1, np.int64)
    offset_of = np.zeros(len(lengths), np.int64)
    num_micro = room.shape[0]
    free = np.zeros(num_micro, np.int64)
    for m in range(num_micro):
        free[m] = room[m, 0].sum()
    tried = np.zeros(num_micro, np.bool_)
    for draw in order:
        first, last = starts[draw], starts[draw + 1]
        tried[:] = False
        for _ in range(num_micro):
            best = -1
            for m in range(num_micro):
                if not tried[m] and (best < 0 or free[m] > free[best]):
                    best = m
            tried[best] = True
            if targets[draw] <= target_room[best] and _place_draw(
                first, last, groups, lengths, room[best], row_of, offset_of, row_length
            ):
                micro_of[draw] = best
                target_room[best] -= targets[draw]
                for s in range(first, last):
                    if groups[s] == 0:
                        free[best] -= lengths[s]
                break
    return micro_of, row_of, offset_of


@njit(cache=True)
def _place_draw(
    first: int,
    last: int,
    groups: IntArray,
    lengths: IntArray,
    room: LongArray,
    row_of: LongArray,
    offset_of: LongArray,
    row_length: int,
) -> bool:  # pragma: no cover - compiled
    """Place the sequences first .. last into a micro-batch (groups, rows), all or none."""
    placed = first
    while placed < last:
        row = _tightest_row(room[groups[placed]], lengths[placed])
        if row < 0:
            break
        offset_of[placed] = row_length - room[groups[placed], row]
        room[groups[placed], row] -= lengths[placed]
        row_of[placed] = row
        placed += 1
    if placed == last:
        return True
    for s in range(first, placed):
        room[groups[s], row_of[s]] += lengths[s]
        row_of[s] = -1
    return False


@njit(cache=True)
def _tightest_row(free: LongArray, length: int) -> int:  # pragma: no cover - compiled
    """The row with the least room that still holds this length, or -1."""
    best, best_free = -1, np.int64(2**62)
    for row in range(len(free)):
        if length <= free[row] < best_free:
            best, best_free = row, free[row]
    return best
