"""The frequent n-grams of a text, level by level, and their pointwise mutual information.

An n-gram is frequent only if the (n - 1)-gram it begins with is, so each level numbers its n-grams
(nodes) by the node of their beginning and their last token: exact counts, keys of 64 bits.

PMI-Masking (Levine et al., 2021) scores an n-gram by the segmentation that explains it best:

    PMI(w) = min over segmentations of w into parts of  log ( p(w) / product of p(part) )
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.types import FloatArray, IntArray, LongArray

if TYPE_CHECKING:
    from isoglot.types import BoolArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The frequent n-grams of one length."""

    keys: LongArray
    """Ascending: node of the first n - 1 tokens × vocabulary size + last token."""
    tokens: IntArray
    """(nodes, n)."""
    log_p: FloatArray
    """Log of the share of each among all n-grams of its length."""


def frequent(
    ids: IntArray, offsets: LongArray, ordinary: BoolArray, *, longest: int, least: int
) -> list[Level]:
    """The n-grams of 1 to `longest` tokens that occur `least` times, shortest first.

    Args:
        ids: the tokens of all sentences.
        offsets: where each sentence begins; last, where the last one ends.
        ordinary: for each id, may it be part of an n-gram?
        longest: n of the longest n-grams.
        least: occurrences that make an n-gram frequent.
    """
    size, left = len(ordinary), _left(ids, offsets, ordinary)
    counts = np.bincount(ids[left > 0], minlength=size)
    everything = np.arange(size)
    with np.errstate(divide="ignore"):
        log_p = np.log(counts) - np.log(max(int(counts.sum()), 1))
    levels = [Level(keys=everything, tokens=everything[:, None].astype(np.int32), log_p=log_p)]
    places = np.flatnonzero((left > 0) & (counts[ids] >= least))
    nodes = ids[places].astype(np.int64)
    for n in range(2, longest + 1):
        on = left[places] >= n
        places, nodes = places[on], nodes[on]
        asked = nodes * size + ids[places + n - 1]
        keys, node_of, counts = np.unique(asked, return_inverse=True, return_counts=True)
        kept = counts >= least
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        keys, counts = keys[kept], counts[kept]
        tokens = np.hstack([levels[-1].tokens[keys // size], (keys % size)[:, None]])
        total = max(int((left >= n).sum()), 1)
        levels.append(
            Level(keys=keys, tokens=tokens.astype(np.int32), log_p=np.log(counts) - np.log(total))
        )
        nodes = number[node_of]
        places, nodes = places[nodes >= 0], nodes[nodes >= 0]
    return levels


def scores(levels: list[Level], n: int, size: int) -> FloatArray:
    """The PMI of every n-gram of length n (2 or more)."""
    tokens = levels[n - 1].tokens
    best = np.full((n + 1, len(tokens)), -np.inf)
    best[0] = 0
    for start in range(n):
        nodes = tokens[:, start].astype(np.int64)
        for stop in range(start + 1, n + 1 if start else n):
            if stop > start + 1:
                asked = nodes * size + tokens[:, stop - 1]
                nodes = np.searchsorted(levels[stop - start - 1].keys, asked)
            # a part of something frequent is frequent: it is there
            explained = best[start] + levels[stop - start - 1].log_p[nodes]
            best[stop] = np.maximum(best[stop], explained)
    return np.asarray(levels[n - 1].log_p - best[n], np.float64)


def _left(ids: IntArray, offsets: LongArray, ordinary: BoolArray) -> IntArray:
    """For each token, how many ordinary ones follow without a break, itself included."""
    stops = ~ordinary[ids]
    ends = np.union1d(np.flatnonzero(stops), offsets[1:])
    following = ends[np.searchsorted(ends, np.arange(len(ids)), "right")]
    left = following - np.arange(len(ids))
    return np.where(stops, 0, left).astype(np.int32)
