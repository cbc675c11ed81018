"""How the sequences of draws are packed into rows of one fixed shape.

A draw may give several sequences (a pair read by two objectives, CAMLM's two directions), which
must land in the same micro-batch, so that an objective finds all of them in one forward pass. Main
rows and each objective's auxiliary rows are separate groups of rows. Draws are tried longest first;
each goes to the micro-batch with the most free tokens and, inside it, to the row with the least
room that holds it (best fit). Rows are then 98-99 % full, and micro-batches have similar contents,
which in-batch negatives need.

The time grows with the number of draws, not with draws × micro-batches: micro-batches are the
leaves of a binary tree whose nodes know the most free tokens, the most free targets and the two
widest rows below them, and the rows of a micro-batch are sorted by their room.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from isoglot.types import IntArray, LongArray

_TOKENS, _TARGETS, _ROWS = 0, 1, 2
"""Columns of the tree and of a draw's needs: tokens of the main rows, targets, and then for each
group of rows the widest and the second widest row (the longest and second longest sequence)."""


@njit(cache=True, nogil=True)
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
    bits = 1
    while 2**bits < room.shape[2]:
        bits += 1
    rows = _sort_rows(room, bits)
    tree = _build_tree(rows, room, target_room, bits)
    need = np.zeros(tree.shape[1], np.int64)
    hopeless = np.full(tree.shape[1], 2**62, np.int64)
    for draw in order:
        first, last = starts[draw], starts[draw + 1]
        _count_needs(need, groups[first:last], lengths[first:last], targets[draw])
        if _exceeds(need, hopeless):
            continue
        micro, tried = _find_micro(
            tree, need, first, last, groups, lengths, rows, row_of, offset_of, row_length, bits
        )
        if micro >= 0:
            micro_of[draw] = micro
            _take(tree, micro, need, rows, bits)
        elif not tried:
            # room only shrinks: whatever needs as much of everything finds no place either
            hopeless[:] = need
    target_room[:] = tree[len(tree) // 2 :, _TARGETS][: len(target_room)]
    _write_room(rows, room, bits)
    return micro_of, row_of, offset_of


@njit(cache=True, nogil=True)
def _sort_rows(room: LongArray, bits: int) -> LongArray:  # pragma: no cover - compiled
    """(micro-batches, groups, rows): room and number of each row in one integer, ascending."""
    rows = np.empty(room.shape, np.int64)
    for m in range(room.shape[0]):
        for g in range(room.shape[1]):
            for row in range(room.shape[2]):
                rows[m, g, row] = (room[m, g, row] << bits) | row
            rows[m, g].sort()
    return rows


@njit(cache=True, nogil=True)
def _write_room(rows: LongArray, room: LongArray, bits: int) -> None:  # pragma: no cover - compiled
    """The reverse of `_sort_rows`."""
    for m in range(room.shape[0]):
        for g in range(room.shape[1]):
            for key in rows[m, g]:
                room[m, g, key & (2**bits - 1)] = key >> bits


@njit(cache=True, nogil=True)
def _count_needs(
    need: LongArray, groups: IntArray, lengths: IntArray, targets: int
) -> None:  # pragma: no cover - compiled
    """What a micro-batch must have, at least, to hold a draw of these sequences."""
    need[:] = 0
    need[_TARGETS] = targets
    for s in range(len(groups)):
        length, longest = np.int64(lengths[s]), _ROWS + 2 * groups[s]
        if groups[s] == 0:
            need[_TOKENS] += length
        need[longest + 1] = max(need[longest + 1], min(length, need[longest]))
        need[longest] = max(need[longest], length)


@njit(cache=True, nogil=True)
def _exceeds(need: LongArray, other: LongArray) -> bool:  # pragma: no cover - compiled
    """Does a draw need as much of everything as another one, or more?"""
    for what in range(len(need)):  # noqa: SIM110 (numba compiles no generators)
        if need[what] < other[what]:
            return False
    return True


@njit(cache=True, nogil=True)
def _build_tree(
    rows: LongArray, room: LongArray, target_room: LongArray, bits: int
) -> LongArray:  # pragma: no cover - compiled
    """(nodes, what): node n has the children 2n and 2n + 1, the last half are micro-batches."""
    num_micro, num_groups = room.shape[:2]
    leaves = 1
    while leaves < num_micro:
        leaves *= 2
    tree = np.full((2 * leaves, _ROWS + 2 * num_groups), -1, np.int64)
    for m in range(num_micro):
        tree[leaves + m, _TOKENS] = room[m, 0].sum()
        tree[leaves + m, _TARGETS] = target_room[m]
        _write_widest(tree[leaves + m], rows[m], bits)
    for node in range(leaves - 1, 0, -1):
        for what in range(tree.shape[1]):
            tree[node, what] = max(tree[2 * node, what], tree[2 * node + 1, what])
    return tree


@njit(cache=True, nogil=True)
def _write_widest(
    leaf: LongArray, rows: LongArray, bits: int
) -> None:  # pragma: no cover - compiled
    for g in range(len(rows)):
        leaf[_ROWS + 2 * g] = rows[g, -1] >> bits
        leaf[_ROWS + 2 * g + 1] = rows[g, -2] >> bits if rows.shape[1] > 1 else 0


@njit(cache=True, nogil=True)
def _find_micro(
    tree: LongArray,
    need: LongArray,
    first: int,
    last: int,
    groups: IntArray,
    lengths: IntArray,
    rows: LongArray,
    row_of: LongArray,
    offset_of: LongArray,
    row_length: int,
    bits: int,
) -> tuple[int | np.int64, bool]:  # pragma: no cover - compiled
    """Place a draw into the micro-batch with the most free tokens that holds it.

    Of equal ones into the first. Gives its number, -1 if there is none, and whether a micro-batch
    with as much room as the draw needs was tried in vain.
    """
    leaves, tried = len(tree) // 2, False
    if not _may_hold(tree[1], need):
        return -1, tried
    node = 1
    while node < leaves:
        node *= 2
        if tree[node + 1, _TOKENS] > tree[node, _TOKENS]:
            node += 1
    if _may_hold(tree[node], need) and _place_draw(
        first, last, groups, lengths, rows[node - leaves], row_of, offset_of, row_length, bits
    ):
        return node - leaves, tried
    # nodes by free tokens, then from the left: micro-batches come out in the order they are tried
    heap = [(np.int64(0), np.int64(0), np.int64(leaves), np.int64(1))]
    while len(heap) > 0:
        _, left, width, parent = heappop(heap)
        if parent >= leaves:
            if _place_draw(
                first, last, groups, lengths, rows[left], row_of, offset_of, row_length, bits
            ):
                return left, tried
            tried = True
            continue
        width //= 2
        for child in range(2):
            number = 2 * parent + child
            if _may_hold(tree[number], need):
                place = left + child * width
                heappush(heap, (np.int64(-tree[number, _TOKENS]), place, width, number))
    return -1, tried


@njit(cache=True, nogil=True)
def _may_hold(node: LongArray, need: LongArray) -> bool:  # pragma: no cover - compiled
    """Could a micro-batch below this node have as much of everything as a draw needs?"""
    if node[_TOKENS] < need[_TOKENS] or node[_TARGETS] < need[_TARGETS]:
        return False
    for longest in range(_ROWS, len(need), 2):
        if node[longest] < need[longest]:
            return False
        # the two longest sequences go into two rows, or into one
        both = need[longest] + need[longest + 1]
        if node[longest + 1] < need[longest + 1] and node[longest] < both:
            return False
    return True


@njit(cache=True, nogil=True)
def _take(
    tree: LongArray, micro: int, need: LongArray, rows: LongArray, bits: int
) -> None:  # pragma: no cover - compiled
    """Write what a micro-batch has left after a draw was placed into it into the tree."""
    node = len(tree) // 2 + micro
    tree[node, _TOKENS] -= need[_TOKENS]
    tree[node, _TARGETS] -= need[_TARGETS]
    _write_widest(tree[node], rows[micro], bits)
    while node > 1:
        node //= 2
        for what in range(tree.shape[1]):
            tree[node, what] = max(tree[2 * node, what], tree[2 * node + 1, what])


@njit(cache=True, nogil=True)
def _place_draw(
    first: int,
    last: int,
    groups: IntArray,
    lengths: IntArray,
    rows: LongArray,
    row_of: LongArray,
    offset_of: LongArray,
    row_length: int,
    bits: int,
) -> bool:  # pragma: no cover - compiled
    """Place the sequences first .. last into a micro-batch (groups, rows), all or none."""
    placed = first
    while placed < last:
        own = rows[groups[placed]]
        # the row with the least room that still holds it; of equal ones the first
        place = np.searchsorted(own, np.int64(lengths[placed]) << bits)
        if place == len(own):
            break
        row_of[placed] = own[place] & (2**bits - 1)
        offset_of[placed] = row_length - (own[place] >> bits)
        _move(own, place, own[place] - (np.int64(lengths[placed]) << bits))
        placed += 1
    if placed == last:
        return True
    for s in range(placed - 1, first - 1, -1):
        own = rows[groups[s]]
        key = ((row_length - offset_of[s] - lengths[s]) << bits) | row_of[s]
        _move(own, np.searchsorted(own, key), key + (np.int64(lengths[s]) << bits))
        row_of[s] = -1
    return False


@njit(cache=True, nogil=True)
def _move(rows: LongArray, place: int, key: int) -> None:  # pragma: no cover - compiled
    """Change the key at a place of sorted rows, and keep them sorted."""
    while place > 0 and rows[place - 1] > key:
        rows[place] = rows[place - 1]
        place -= 1
    while place < len(rows) - 1 and rows[place + 1] < key:
        rows[place] = rows[place + 1]
        place += 1
    rows[place] = key
