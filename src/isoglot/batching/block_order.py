"""The block-shuffled order: large sequential reads, for slow disks and object stores.

A block is a run of examples that lie together, those of one shard. In every epoch the blocks are
permuted, some blocks that follow each other in this order form a window, and the examples of a
window are permuted among themselves:

    blocks of the corpus    0 1 2 3 4 5 6 7
    permuted, in windows    5 0 3 | 7 1 6 4 2       (shuffle_blocks: 3)
    examples                of 5, 0 and 3 mixed, then of the others mixed

Which example comes at a place of an epoch is computed from the key and the place alone, as in the
order of `isoglot.batching.mixture`; every example comes once. A reader needs the shards of one
window at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isoglot.batching.counter_rng import permute

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.types import LongArray

_KEPT_EPOCHS = 2
"""Orders of blocks that are kept: draws of two epochs may be planned together."""


class _Epoch(NamedTuple):
    blocks: LongArray
    """The blocks in the order of this epoch."""
    ends: LongArray
    """Examples of the epoch until the end of each of them."""
    window_ends: LongArray
    """Examples of the epoch until the end of each window."""


class BlockOrder:
    """The examples of a component in the order of blocks."""

    def __init__(self, ends: LongArray, per_window: int, key: Callable[..., int]) -> None:
        """`ends` has the end of each block of examples; `key` gives a key for names and numbers."""
        self._ends, self._per_window, self._key = ends, per_window, key
        self._sizes = np.diff(ends, prepend=0)
        self._epochs: dict[int, _Epoch] = {}

    def indices(self, epoch: int, places: LongArray) -> LongArray:
        """The examples at some places of an epoch."""
        order = self._epochs.get(epoch) or self._make_epoch(epoch)
        windows = np.searchsorted(order.window_ends, places, "right")
        found = np.empty_like(places)
        for window in np.unique(windows).tolist():
            chosen = windows == window
            start = int(order.window_ends[window - 1]) if window else 0
            size = int(order.window_ends[window]) - start
            found[chosen] = start + permute(
                size, self._key(epoch, "window", window), places[chosen] - start
            )
        in_order = np.searchsorted(order.ends, found, "right")
        blocks = order.blocks[in_order]
        return self._ends[blocks] - (order.ends[in_order] - found)

    def _make_epoch(self, epoch: int) -> _Epoch:
        number = len(self._sizes)
        blocks = permute(number, self._key(epoch, "blocks"), np.arange(number))
        ends = np.cumsum(self._sizes[blocks])
        # the last window takes the blocks that would not fill one of their own
        lasts = np.arange(1, max(number // self._per_window, 1)) * self._per_window - 1
        made = _Epoch(blocks, ends, np.append(ends[lasts], ends[-1]))
        while len(self._epochs) >= _KEPT_EPOCHS:
            del self._epochs[next(iter(self._epochs))]
        self._epochs[epoch] = made
        return made
