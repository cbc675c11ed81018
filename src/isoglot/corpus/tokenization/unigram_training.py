"""Training of unigram vocabularies (Kudo, 2018) on counted words, in compiled code.

    words --fragments--> substrings --counts--> seed pieces --EM, pruning--> pieces with scores

The steps are those of SentencePiece's trainer: the most frequent repeated substrings are the first
pieces; an EM step estimates their probabilities, with digamma for the logarithm as a sparse prior;
a fifth of the pieces is removed, those whose removal costs the least likelihood; and so on until
the vocabulary has the size. SentencePiece reads every sentence and looks each piece up in every
step. Here each distinct fragment is read once, and the places of pieces are stored (`lattice`).

Threads share the fragments in parts that do not depend on their number, and the sums of the parts
are added in order: the result does not depend on how many threads there are. It may differ in the
last digits of scores where numpy computes logarithms by other instructions (AVX-512, AVX2).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isoglot.corpus.tokenization.fragments import Fragments, split_fragments
from isoglot.corpus.tokenization.lattice import (
    MAX_LENGTH,
    best_counts,
    expected_counts,
    fill_edges,
    keep_edges,
    number_keys,
    removal_losses,
)
from isoglot.types import IntArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from isoglot.types import BoolArray, FloatArray

_MAX_SEEDS = 1_000_000
_KEPT_SHARE = 0.8
"""Share of the pieces that a pruning keeps."""
_SPARE = 1.15
"""EM ends with this many times the pieces of the vocabulary; the most probable are kept."""
_MIN_EXPECTED = 0.5
"""Pieces with fewer expected occurrences are removed."""
_PARTS = 16
_CODE_BITS = np.uint64(21)


@dataclass(slots=True)
class _Lattice:
    """Pieces, and where they occur in the fragments."""

    fragments: Fragments
    where: LongArray
    """A place at which each piece occurs."""
    sizes: npt.NDArray[np.uint8]
    """The characters of each piece; pieces of one character come first."""
    first: LongArray
    pieces: IntArray
    lengths: npt.NDArray[np.uint8]
    """Edges, as in `lattice`."""

    @property
    def edges(self) -> tuple[LongArray, IntArray, npt.NDArray[np.uint8]]:
        """As the loops of `lattice` take them."""
        return self.first, self.pieces, self.lengths

    def keep(self, chosen: BoolArray) -> None:
        """Removes the other pieces."""
        numbers = np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32)
        left = keep_edges(self.first, self.pieces, self.lengths, numbers)
        self.pieces, self.lengths = self.pieces[:left], self.lengths[:left]
        self.where, self.sizes = self.where[chosen], self.sizes[chosen]

    def texts(self) -> list[str]:
        """The pieces."""
        data, codes = memoryview(self.fragments.codes.tobytes()), 4
        return [
            str(data[codes * place : codes * (place + size)], "utf-32-le")
            for place, size in zip(self.where.tolist(), self.sizes.tolist(), strict=True)
        ]


class TooManyCharactersError(ValueError):
    """The characters of a text do not fit into the vocabulary."""


def train_unigram(
    words: Mapping[str, int], num_pieces: int, coverage: float, required: str = ""
) -> list[tuple[str, float]]:
    """Pieces with their log probabilities, the most probable first: `num_pieces`, or all there are.

    Pieces of their own have the most frequent characters that make up a share of `coverage` of the
    text, and those of `required`.
    """
    fragments = split_fragments(words, coverage)
    unseen = sorted(set(required) - set(map(chr, fragments.characters.tolist())))
    if len(fragments.characters) + len(unseen) > num_pieces:
        raise TooManyCharactersError(
            f"{len(fragments.characters)} characters are {coverage:.2%} of the text"
        )
    lattice, covered = _seed(fragments)
    scores = np.log(covered) - np.log(covered.sum())
    most = int(_SPARE * num_pieces)
    with ThreadPoolExecutor(min(_PARTS, os.cpu_count() or 1)) as pool:
        parts = _Parts(pool, fragments)
        scores = _em_step(lattice, scores, parts)
        while len(scores) > most:
            scores = _prune(lattice, scores, max(most, int(_KEPT_SHARE * len(scores))), parts)
            scores = _em_step(lattice, scores, parts)
    # all characters, then the most probable pieces
    order = np.lexsort((-scores, lattice.sizes > 1))[: num_pieces - len(unseen)]
    texts = lattice.texts()
    chosen = [(texts[index], float(scores[index])) for index in order.tolist()]
    lowest = float(scores.min())
    chosen += [(character, lowest) for character in unseen]
    return sorted(chosen, key=lambda one: (-one[1], one[0]))


def _seed(fragments: Fragments) -> tuple[_Lattice, FloatArray]:
    """All characters, and the repeated substrings that cover most text; the text each covers.

    A substring that is always followed by the same character is left out: the longer one is there.
    Substrings of one more character are found among the occurrences of those with one less.
    """
    codes, ends = fragments.codes, fragments.ends
    sizes = np.diff(ends, prepend=0)
    room = np.repeat(ends, sizes) - np.arange(len(codes))
    weights = np.repeat(fragments.counts, sizes)
    places = np.arange(len(codes))
    found, at = number_keys(codes.astype(np.uint64))
    levels = [_Substrings(places, found, at, np.bincount(found, weights))]
    for length in range(2, MAX_LENGTH + 1):
        long_enough = room[places] >= length
        places, prefixes = places[long_enough], found[long_enough]
        keys = prefixes.astype(np.uint64) << _CODE_BITS | codes[places + length - 1]
        found, at = number_keys(keys)
        counts = np.bincount(found, weights[places], len(at))
        shorter, prefix = levels[-1], prefixes[at]
        shorter.maximal[prefix[counts == shorter.counts[prefix]]] = False
        repeated = counts >= 2
        numbers = np.where(repeated, np.cumsum(repeated) - 1, -1).astype(np.int32)
        at, found = places[at[repeated]], numbers[found]
        places, found = places[found >= 0], found[found >= 0]
        levels.append(_Substrings(places, found, at, counts[repeated]))
    return _seed_lattice(fragments, levels)


class _Substrings:
    """Substrings of one length, and where they occur."""

    def __init__(
        self, places: LongArray, found: IntArray, where: LongArray, counts: npt.NDArray[Any]
    ) -> None:
        """`found` are the numbers of the substrings at some places, `where` one place of each."""
        self.places, self.found, self.where, self.counts = places, found, where, counts
        self.maximal = np.ones(len(counts), np.bool_)
        """Which are followed by different characters, or end fragments."""


def _seed_lattice(fragments: Fragments, levels: list[_Substrings]) -> tuple[_Lattice, FloatArray]:
    """The lattice of the substrings that are seeds, and the text that each of them covers."""
    sizes = np.repeat(
        np.arange(1, len(levels) + 1, dtype=np.uint8), [len(level.counts) for level in levels]
    )
    counts = np.concatenate([level.counts for level in levels])
    covered = counts * sizes
    maximal = np.concatenate([level.maximal for level in levels])
    candidates = np.flatnonzero((sizes > 1) & maximal)
    best = candidates[np.argsort(-covered[candidates], kind="stable")[:_MAX_SEEDS]]
    chosen = sizes == 1
    chosen[best] = True
    numbers = np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32)
    edges, before = [], 0
    for level in levels:
        of_level = numbers[before : before + len(level.counts)][level.found]
        edges.append((level.places[of_level >= 0], of_level[of_level >= 0]))
        before += len(level.counts)
    first = np.zeros(len(fragments.codes) + 1, np.int64)
    for places, _ in edges:
        first[1:] += np.bincount(places, minlength=len(fragments.codes))
    np.cumsum(first, out=first)
    next_edge = first[:-1].copy()
    pieces, lengths = np.empty(first[-1], np.int32), np.empty(first[-1], np.uint8)
    for length, (places, found) in enumerate(edges, start=1):
        fill_edges(places, found, length, next_edge, pieces, lengths)
    where = np.concatenate([level.where for level in levels])[chosen]
    return _Lattice(fragments, where, sizes[chosen], first, pieces, lengths), covered[chosen]


class _Parts:
    """Runs compiled loops over parts of the fragments or pieces, in threads."""

    def __init__(self, pool: ThreadPoolExecutor, fragments: Fragments) -> None:
        self._pool = pool
        self._fragments = fragments
        places = np.linspace(0, len(fragments.codes), _PARTS + 1)[1:-1].astype(np.int64)
        self._bounds = [0, *np.searchsorted(fragments.ends, places).tolist(), len(fragments.ends)]

    def total(self, loop: Callable[..., Any], lattice: _Lattice, values: FloatArray) -> Any:
        """The sum over all fragments of what a loop returns for some."""
        texts = self._fragments.ends, self._fragments.counts

        def run(begin: int, end: int) -> Any:
            return loop(*texts, *lattice.edges, values, begin, end)

        return sum(self._pool.map(run, self._bounds[:-1], self._bounds[1:]))

    def each_piece(self, loop: Callable[..., Any], lattice: _Lattice, *values: Any) -> Any:
        """What a loop returns for each piece."""
        bounds = np.linspace(0, len(lattice.where), _PARTS + 1).astype(np.int64).tolist()

        def run(begin: int, end: int) -> Any:
            return loop(lattice.where, lattice.sizes, *lattice.edges, *values, begin, end)

        return np.concatenate(list(self._pool.map(run, bounds[:-1], bounds[1:])))


def _em_step(lattice: _Lattice, scores: FloatArray, parts: _Parts) -> FloatArray:
    """Better log probabilities; pieces that are hardly expected are removed."""
    expected: FloatArray = parts.total(expected_counts, lattice, np.exp(scores))
    kept = (expected >= _MIN_EXPECTED) | (lattice.sizes == 1)
    if not kept.all():
        lattice.keep(kept)
    expected = np.maximum(expected[kept], _MIN_EXPECTED)
    return digamma(expected) - digamma(expected.sum(keepdims=True))


def _prune(lattice: _Lattice, scores: FloatArray, size: int, parts: _Parts) -> FloatArray:
    """Removes the pieces whose removal costs the least, until `size` are left."""
    counts: LongArray = parts.total(best_counts, lattice, scores)
    losses: FloatArray = parts.each_piece(removal_losses, lattice, scores, counts)
    kept = np.zeros(len(scores), np.bool_)
    kept[np.argsort(-losses, kind="stable")[:size]] = True
    kept &= losses > -np.inf
    lattice.keep(kept)
    return scores[kept]


def digamma(values: FloatArray) -> FloatArray:
    """The derivative of the logarithm of the gamma function, for positive numbers."""
    values, found = values.copy(), np.zeros_like(values)
    for _ in range(6):
        found -= 1 / values
        values += 1
    square = values**-2
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return found + np.log(values) - 0.5 / values - series
