"""Phrases: n-grams that are hidden together, and a quick way to find them in a text."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from isoglot.types import BoolArray, IntArray, LongArray

NOTHING = -1
"""Fills up the row of a phrase that is shorter than the longest."""


class Phrases:
    """A set of phrases, by length: the keys of all their beginnings, and which of them are whole.

    The key of a beginning is the number of the one that is a token shorter × `size` + its last
    token, so a text is matched by one sorted search per length.
    """

    def __init__(self, table: IntArray) -> None:
        """`table` has a phrase in each row, filled up with `NOTHING`."""
        self.table = table
        self.size = int(table.max(initial=0)) + 1
        self._levels: list[tuple[LongArray, BoolArray]] = []
        rows, nodes = table, table[:, 0].astype(np.int64)
        for n in range(2, table.shape[1] + 1):
            on = rows[:, n - 1] != NOTHING
            rows, nodes = rows[on], nodes[on]
            keys, nodes = np.unique(nodes * self.size + rows[:, n - 1], return_inverse=True)
            whole = np.zeros(len(keys), np.bool_)
            ends = np.ones(len(rows), np.bool_)
            if n < table.shape[1]:
                ends = rows[:, n] == NOTHING
            whole[nodes[ends]] = True
            self._levels.append((keys, whole))

    @classmethod
    def open(cls, file: str) -> Phrases:
        """The phrases of a file that `find_phrases` wrote, kept open."""
        return _open(file)

    def starts(self, ids: IntArray) -> BoolArray:
        """For each token of a text: does a unit begin here? Longer phrases first, from the left."""
        longest = np.ones(len(ids), np.int64)
        places = np.flatnonzero(ids < self.size)
        nodes = ids[places].astype(np.int64)
        for n, (keys, whole) in enumerate(self._levels, start=2):
            inside = places + n - 1 < len(ids)
            places, nodes = places[inside], nodes[inside]
            following = ids[places + n - 1]
            if not len(keys):
                break
            asked = nodes * self.size + following
            found = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
            there = (keys[found] == asked) & (following < self.size)
            places, nodes = places[there], found[there]
            longest[places[whole[nodes]]] = n
        starts: BoolArray = _from_the_left(longest)
        return starts


@njit(cache=True)
def _from_the_left(longest: LongArray) -> BoolArray:  # pragma: no cover - compiled
    """Take the unit at the first token, go on behind it, and so on."""
    starts = np.zeros(len(longest), np.bool_)
    place = 0
    while place < len(longest):
        starts[place] = True
        place += longest[place]
    return starts


@lru_cache(maxsize=4)
def _open(file: str) -> Phrases:
    try:
        return Phrases(np.load(Path(file).expanduser(), allow_pickle=False))
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{file}: is no file of phrases ({error}). Make one with isoglot cooccurrence phrases, "
            "or leave masking.phrases out: they are then found in the corpus."
        ) from error
