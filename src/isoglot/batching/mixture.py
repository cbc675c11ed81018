"""Which example is the n-th draw: languages by p proportional to N^alpha, examples in epochs.

A mixture has components: each (source, language) of each stream, or, with `sampling: epochs`, a
whole stream. The component of draw n is a function of (seed, stage, n), and of the step where alpha
is annealed. The example of the c-th draw from a component is a function of (seed, stage, component,
c): a new permutation in each epoch of the component. So the state of the data is a counter for each
component (`Cursor`).

    n --uniform(key, n)--> component --counter--> permute(key of the epoch) --> example
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isoglot.batching.block_order import BlockOrder
from isoglot.batching.counter_rng import key_of, permute, uniform
from isoglot.batching.language_shares import alpha_at, component_shares, component_slices
from isoglot.batching.streams.base import LanguageSlice, StreamConfig
from isoglot.corpus.storage.grouping import group_places
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from isoglot.objectives.base import Objective
    from isoglot.types import BoolArray, FloatArray, IntArray, LongArray

NamedObjectives = tuple[tuple[str, "Objective"], ...]
"""(name, objective), in the recipe's order."""

_NUM_SAMPLED = 4096
"""Examples read from the length index to estimate the mean length of a slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStream:
    """A stream opened on a corpus: its slices, and the objectives that read it."""

    config: StreamConfig
    slices: tuple[LanguageSlice, ...]
    objectives: NamedObjectives
    missing: tuple[str, ...] = ()
    """`source/language` of selected slices that have no examples."""
    unread: tuple[LanguageSlice, ...] = ()
    """Slices of which all examples are dropped."""

    def lengths(self, sizes: IntArray) -> IntArray:
        """(n, sequences of a draw): the lengths of all sequences built from examples."""
        return sequence_lengths(self.objectives, sizes)

    def in_main_rows(self) -> BoolArray:
        """Which of a draw's sequences go into the main rows, not into auxiliary rows."""
        flags = []
        for _, objective in self.objectives:
            sizes = self.slices[0].sizes(np.zeros(1, np.int64), np.zeros(1))
            num_aux = objective.num_aux_sequences
            flags += [True] * (objective.lengths(sizes).shape[1] - num_aux) + [False] * num_aux
        return np.array(flags)

    def objectives_of(self, slices: tuple[LanguageSlice, ...]) -> NamedObjectives:
        """The objectives that accept a language of these slices."""
        return tuple(
            (name, objective)
            for name, objective in self.objectives
            if any(objective.accepts_language(one.language) for one in slices)
        )

    def mean_length(self, slices: tuple[LanguageSlice, ...]) -> float:
        """Mean number of tokens in the main rows of one draw from some slices."""
        means = []
        for one in slices:
            sample = evenly_spaced(one.num_examples, _NUM_SAMPLED)
            lengths = self.lengths(one.sizes(sample, np.zeros(len(sample))))
            means.append(float(lengths[:, self.in_main_rows()].sum(axis=1).mean()))
        sizes = np.array([one.num_examples for one in slices], dtype=np.float64)
        return float(np.average(means, weights=sizes))


class Component:
    """What one draw can choose: one slice of a stream, or the union of all its slices."""

    def __init__(
        self,
        stream: int,
        name: str,
        slices: tuple[LanguageSlice, ...],
        objectives: NamedObjectives,
        *,
        seed: int,
        stage: int,
        shuffle_blocks: int | None = None,
    ) -> None:
        """`shuffle_blocks`: blocks that are shuffled together; none: all examples are."""
        self.stream, self.name, self.slices, self.objectives = stream, name, slices, objectives
        self.ends = np.cumsum([one.num_examples for one in slices])
        self.num_examples = int(self.ends[-1])
        self._seed, self._stage = seed, stage
        self._uniform_key = key_of(seed, stage, "chances", name)
        self._block_order: BlockOrder | None = None
        if shuffle_blocks is not None:
            starts = [0, *self.ends.tolist()]
            parts = [one.block_ends() + start for one, start in zip(slices, starts, strict=False)]
            key = partial(key_of, seed, stage, name)
            self._block_order = BlockOrder(np.concatenate(parts), shuffle_blocks, key)

    def sample_sizes(self, limit: int) -> IntArray:
        """Sizes of at most `limit` examples, evenly spaced, for estimates."""
        return self.sizes(
            evenly_spaced(self.num_examples, limit), np.zeros(min(limit, self.num_examples))
        )

    def indices(self, counters: LongArray) -> LongArray:
        """The example of the c-th draw; each is drawn once in every epoch."""
        epochs, offsets = np.divmod(counters, self.num_examples)
        indices = np.empty_like(counters)
        for epoch in np.unique(epochs):
            chosen = epochs == epoch
            if self._block_order is not None:
                indices[chosen] = self._block_order.indices(int(epoch), offsets[chosen])
                continue
            key = key_of(self._seed, self._stage, self.name, int(epoch))
            indices[chosen] = permute(self.num_examples, key, offsets[chosen])
        return indices

    def locate(self, index: int) -> tuple[LanguageSlice, int]:
        """The slice that holds an example, and its index there."""
        number = int(np.searchsorted(self.ends, index, "right"))
        return self.slices[number], index - (int(self.ends[number - 1]) if number else 0)

    def uniforms(self, counters: LongArray) -> FloatArray:
        """A random number in [0, 1) for each draw: the choices that its objectives share."""
        return uniform(self._uniform_key, counters)

    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        """(n, k) sizes of examples of any slice."""
        if len(self.slices) == 1:
            return self.slices[0].sizes(indices, uniforms)
        owners = np.searchsorted(self.ends, indices, "right")
        starts = self.ends - [one.num_examples for one in self.slices]
        found: IntArray | None = None
        for number, chosen in group_places(owners):
            local = indices[chosen] - starts[number]
            sizes = self.slices[number].sizes(local, uniforms[chosen])
            if found is None:
                found = np.empty((len(indices), sizes.shape[1]), np.int32)
            found[chosen] = sizes
        assert found is not None
        return found


class Mixture:
    """All components of a stage and the probability of drawing each."""

    def __init__(
        self, streams: tuple[OpenStream, ...], *, seed: int, stage: int, steps: int = 1
    ) -> None:
        """`steps`: those of the stage, over which `end_alpha` is reached."""
        self.streams, self._steps = streams, steps
        self._key = key_of(seed, stage, "cells")
        self.components: list[Component] = []
        self._means: list[list[float]] = []
        """Of each stream, the mean length of a draw from each component."""
        for number, stream in enumerate(streams):
            if not stream.slices:
                raise CorpusError(
                    f"the stream {stream.config.kind!r} has no examples left: check its sources, "
                    f"languages and overlong settings."
                )
            groups = component_slices(stream)
            self._means.append([stream.mean_length(group) for group in groups])
            for group in groups:
                label = group[0].name if len(groups) > 1 or len(group) == 1 else "union"
                component = Component(
                    number,
                    f"{number}:{stream.config.kind}/{label}",
                    group,
                    stream.objectives_of(group),
                    seed=seed,
                    stage=stage,
                    shuffle_blocks=stream.config.blocks_together,
                )
                self.components.append(component)
        self.anneals = steps > 1 and any(one.config.end_alpha is not None for one in streams)
        """Do the probabilities change from step to step?"""
        self.probabilities, self.tokens_per_draw = self._at(0)
        """In the first step; `tokens_per_draw` is the mean number of tokens in the main rows of one
        draw, about."""
        self.last_probabilities = self._at(steps - 1)[0] if self.anneals else self.probabilities
        self._cumulative = (0, np.cumsum(self.probabilities))

    def _at(self, step: int) -> tuple[FloatArray, float]:
        """The probability of each component in a step, and the tokens of a draw."""
        found: list[float] = []
        for stream, means in zip(self.streams, self._means, strict=True):
            shares = component_shares(stream, alpha_at(stream.config, step, self._steps))
            per_draw = float(np.dot(shares, means))
            found += [stream.config.share * share / per_draw for share in shares]
        total = sum(stream.config.share for stream in self.streams)
        return np.array(found) / sum(found), total / sum(found)

    def draw_components(self, first: int, number: int, *, step: int = 0) -> LongArray:
        """The components of the draws first, first + 1, ... if they are taken in a step."""
        if self.anneals and self._cumulative[0] != step:
            self._cumulative = (step, np.cumsum(self._at(step)[0]))
        points = uniform(self._key, np.arange(first, first + number))
        chosen = np.searchsorted(self._cumulative[1], points, "right")
        return np.minimum(chosen, len(self.components) - 1).astype(np.int64)


def sequence_lengths(objectives: NamedObjectives, sizes: IntArray) -> IntArray:
    """(n, sequences of a draw): the lengths of all sequences built from examples."""
    return np.concatenate([objective.lengths(sizes) for _, objective in objectives], axis=1)


def evenly_spaced(number: int, limit: int) -> LongArray:
    """At most `limit` indices below a number, evenly spaced, as files are often sorted."""
    return np.linspace(0, number - 1, min(limit, number)).astype(np.int64)
