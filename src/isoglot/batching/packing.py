"""Fitting sequences into rows of one fixed shape.

A draw may give several sequences (a pair read by two objectives, CAMLM's two directions) and they
must land in the same micro-batch, so that an objective finds all it needs in one pass; main rows
and each objective's side rows are separate groups of rows. Draws are taken longest first; each goes
to the micro-batch with the most room, and inside it to the tightest row that holds it (best fit).
That fills rows to 98-99 % and keeps micro-batches alike, which in-batch candidates need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from isoglot.types import IntArray, LongArray


@njit(cache=True)
def pack(  # noqa: C901 (one compiled loop)
    order: LongArray,
    starts: LongArray,
    groups: IntArray,
    lengths: IntArray,
    targets: IntArray,
    room: LongArray,
    target_room: LongArray,
    row_length: int,
) -> tuple[LongArray, LongArray, LongArray]:  # pragma: no cover - compiled
    """Place draws into rows.

    Args:
        order: the draws, in the order in which they are tried.
        starts: (draws + 1) draw d owns the sequences starts[d] .. starts[d + 1].
        groups: group of rows of each sequence (0: main rows, others: side rows).
        lengths: length of each sequence.
        targets: most prediction sites each draw can have.
        room: (micro-batches, groups, rows) free tokens; changed in place. Rows that a group does
            not have are given as 0.
        target_room: (micro-batches) free prediction sites; changed in place.
        row_length: tokens of an empty row.

    Returns:
        The micro-batch of each draw (-1: not placed); the row of each sequence, and where in its
        row it starts.
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
        tried[:] = False
        for _ in range(num_micro):
            best = -1
            for m in range(num_micro):
                if not tried[m] and (best < 0 or free[m] > free[best]):
                    best = m
            tried[best] = True
            if targets[draw] > target_room[best]:
                continue
            first, last = starts[draw], starts[draw + 1]
            placed = first
            while placed < last:
                row = _tightest(room[best, groups[placed]], lengths[placed])
                if row < 0:
                    break
                offset_of[placed] = row_length - room[best, groups[placed], row]
                room[best, groups[placed], row] -= lengths[placed]
                row_of[placed] = row
                placed += 1
            if placed == last:
                micro_of[draw] = best
                target_room[best] -= targets[draw]
                for s in range(first, last):
                    if groups[s] == 0:
                        free[best] -= lengths[s]
                break
            for s in range(first, placed):
                room[best, groups[s], row_of[s]] += lengths[s]
                row_of[s] = -1
    return micro_of, row_of, offset_of


@njit(cache=True)
def _tightest(free: LongArray, length: int) -> int:  # pragma: no cover - compiled
    """The row with the least room that still holds this length, or -1."""
    best, best_free = -1, np.int64(2**62)
    for row in range(len(free)):
        if length <= free[row] < best_free:
            best, best_free = row, free[row]
    return best
