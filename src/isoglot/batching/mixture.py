"""Which example is the n-th: languages by p proportional to N^alpha, examples without replacement.

A cell is what one draw can choose: a (source, language) of a stream, or, with `mixture: epochs`,
the whole stream. The cell of draw n is a function of (seed, stage, n); the example of the c-th draw
from a cell is a function of (seed, stage, cell, c): a fresh permutation in every epoch of the cell.
So the state of the data is a few counters (`Cursor`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isoglot.batching.permutation import key_of, permute, uniform
from isoglot.batching.streams import Part, SequenceMaker, StreamConfig
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from isoglot.types import FloatArray, IntArray, LongArray

Makers = tuple[tuple[str, SequenceMaker], ...]
"""Data halves under their objectives' names, in the recipe's order."""

_SAMPLED = 4096
"""Examples looked at to tell the mean length of a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStream:
    """A stream opened on a corpus: its parts, and the data halves that read it."""

    config: StreamConfig
    parts: tuple[Part, ...]
    makers: Makers
    """(objective name, its data half), in the recipe's order."""
    missing: tuple[str, ...] = ()
    """`source/language` of what was selected and has no example to give."""

    def lengths(self, sizes: IntArray) -> IntArray:
        """(n, sequences of a draw): the lengths of all sequences made of examples."""
        return sequence_lengths(self.makers, sizes)

    def main(self) -> npt.NDArray[np.bool_]:
        """Which of a draw's sequences go into the main rows."""
        flags = []
        for _, maker in self.makers:
            some = self.parts[0].sizes(np.zeros(1, np.int64), np.zeros(1))
            number = maker.lengths(some).shape[1]
            flags += [True] * (number - maker.num_side) + [False] * maker.num_side
        return np.array(flags)

    def makers_of(self, parts: tuple[Part, ...]) -> Makers:
        """The data halves that make something of these parts."""
        return tuple(
            (name, maker)
            for name, maker in self.makers
            if any(maker.wants(part.language) for part in parts)
        )

    def mean_length(self, part: Part) -> float:
        """Tokens in the main rows that one draw from a part gives on average."""
        sample = evenly(part.num_examples, _SAMPLED)
        lengths = self.lengths(part.sizes(sample, np.zeros(len(sample))))
        return float(lengths[:, self.main()].sum(axis=1).mean())


class Cell:
    """What one draw can choose: one part of a stream, or the union of all its parts."""

    def __init__(
        self,
        stream: int,
        name: str,
        parts: tuple[Part, ...],
        makers: Makers,
        *,
        seed: int,
        stage: int,
    ) -> None:
        self.stream, self.name, self.parts, self.makers = stream, name, parts, makers
        self.ends = np.cumsum([part.num_examples for part in parts])
        self.num_examples = int(self.ends[-1])
        self._seed, self._stage = seed, stage
        self._chance_key = key_of(seed, stage, "chances", name)

    def sample(self, most: int) -> IntArray:
        """Sizes of some examples, to reckon with."""
        return self.sizes(evenly(self.num_examples, most), np.zeros(min(most, self.num_examples)))

    def indices(self, counters: LongArray) -> LongArray:
        """The example of the c-th draw from this cell; each is drawn once in every epoch."""
        epochs, offsets = np.divmod(counters, self.num_examples)
        indices = np.empty_like(counters)
        for epoch in np.unique(epochs):
            chosen = epochs == epoch
            key = key_of(self._seed, self._stage, self.name, int(epoch))
            indices[chosen] = permute(self.num_examples, key, offsets[chosen])
        return indices

    def locate(self, index: int) -> tuple[Part, int]:
        """The part that holds an example, and its index there."""
        part = int(np.searchsorted(self.ends, index, "right"))
        return self.parts[part], index - (int(self.ends[part - 1]) if part else 0)

    def chances(self, counters: LongArray) -> FloatArray:
        """A number in [0, 1) for each draw from this cell: the choices its objectives share."""
        return uniform(self._chance_key, counters)

    def sizes(self, indices: LongArray, chances: FloatArray) -> IntArray:
        """(n, k) sizes of examples, whatever part holds them."""
        if len(self.parts) == 1:
            return self.parts[0].sizes(indices, chances)
        owners = np.searchsorted(self.ends, indices, "right")
        starts = self.ends - [part.num_examples for part in self.parts]
        found: IntArray | None = None
        for number in np.unique(owners):
            chosen = owners == number
            local = indices[chosen] - starts[number]
            sizes = self.parts[number].sizes(local, chances[chosen])
            if found is None:
                found = np.empty((len(indices), sizes.shape[1]), np.int32)
            found[chosen] = sizes
        assert found is not None
        return found


class Mixture:
    """All cells of a stage and the probability of drawing each."""

    def __init__(self, streams: tuple[OpenStream, ...], *, seed: int, stage: int) -> None:
        self.streams = streams
        self._key = key_of(seed, stage, "cells")
        self.cells: list[Cell] = []
        probabilities: list[float] = []
        for number, stream in enumerate(streams):
            if not stream.parts:
                raise CorpusError(
                    f"the stream {stream.config.kind!r} has no examples left: look at its sources, "
                    f"languages and too_long settings."
                )
            groups, shares = _split(stream)
            means = [_mean(stream, group) for group in groups]
            per_draw = float(np.dot(shares, means))
            for group, share in zip(groups, shares, strict=True):
                label = group[0].name if len(groups) > 1 or len(group) == 1 else "union"
                name = f"{number}:{stream.config.kind}/{label}"
                makers = stream.makers_of(group)
                self.cells.append(Cell(number, name, group, makers, seed=seed, stage=stage))
                probabilities.append(stream.config.share * share / per_draw)
        self.probabilities = np.array(probabilities) / sum(probabilities)
        self._cumulative = np.cumsum(self.probabilities)

    def cells_of(self, first: int, number: int) -> LongArray:
        """The cells of the draws first, first + 1, ..."""
        points = uniform(self._key, np.arange(first, first + number))
        chosen = np.searchsorted(self._cumulative, points, "right")
        return np.minimum(chosen, len(self.cells) - 1).astype(np.int64)


def sequence_lengths(makers: Makers, sizes: IntArray) -> IntArray:
    """(n, sequences of a draw): the lengths of all sequences that are made of examples."""
    return np.concatenate([maker.lengths(sizes) for _, maker in makers], axis=1)


def evenly(number: int, most: int) -> LongArray:
    """At most so many indices below a number, evenly spread: files are often sorted."""
    return np.linspace(0, number - 1, min(most, number)).astype(np.int64)


def smoothed(counts: FloatArray, alpha: float) -> FloatArray:
    """P proportional to N^alpha."""
    powers = counts**alpha
    return np.asarray(powers / powers.sum(), dtype=np.float64)


def _split(stream: OpenStream) -> tuple[list[tuple[Part, ...]], FloatArray]:
    """The cells of one stream and the share of its draws that each gets."""
    parts, config = stream.parts, stream.config
    if config.mixture == "epochs":
        return [parts], np.ones(1)
    sizes = np.array(
        [part.num_tokens if config.count == "tokens" else part.num_sentences for part in parts],
        dtype=np.float64,
    )
    languages = sorted({part.language for part in parts})
    of_part = np.array([languages.index(part.language) for part in parts])
    totals = np.bincount(of_part, weights=sizes).astype(np.float64)
    # several sources of one language share the language's probability by their sizes
    shares = smoothed(totals, config.alpha)[of_part] * sizes / totals[of_part]
    return [(part,) for part in parts], shares


def _mean(stream: OpenStream, parts: tuple[Part, ...]) -> float:
    sizes = np.array([part.num_examples for part in parts], dtype=np.float64)
    return float(np.average([stream.mean_length(part) for part in parts], weights=sizes))
