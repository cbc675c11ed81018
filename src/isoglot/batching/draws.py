"""Draws with the lengths of their sequences, looked up in the length index: what packing needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from typing_extensions import override

from isoglot.batching.mixture import sequence_lengths
from isoglot.corpus.storage.grouping import group_places
from isoglot.types import Draw, FloatArray, IntArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        """Some of the draws, in the given order; of a slice, a view."""
        if isinstance(chosen, slice):
            first, last, step = chosen.indices(len(self.components))
            assert step == 1, "draws of a slice are consecutive"
            last = max(first, last)
            starts = self.starts[first : last + 1]
            draws, sequences = slice(first, last), slice(int(starts[0]), int(starts[-1]))
            return self._chosen(starts - starts[0], draws, sequences)
        per_draw = np.diff(self.starts)[chosen]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_draw)])
        return self._chosen(starts, chosen, self.sequences_of(chosen))

    def _chosen(
        self, starts: LongArray, draws: LongArray | slice, sequences: LongArray | slice
    ) -> DrawPool:
        columns = {
            name: getattr(self, name)[sequences if name in ("groups", "lengths") else draws]
            for name in DrawPool.__dataclass_fields__
            if name != "starts"
        }
        return DrawPool(starts=starts, **columns)

    def sequences_of(self, draws: LongArray) -> LongArray:
        """The numbers of the sequences of some draws, one draw after the other."""
        first = self.starts[draws]
        per_draw = self.starts[draws + 1] - first
        ends = np.cumsum(per_draw)
        found: LongArray = np.arange(per_draw.sum()) + np.repeat(first - ends + per_draw, per_draw)
        return found

    def join(self, more: DrawPool) -> DrawPool:
        """These draws, then more."""
        columns = {
            name: np.concatenate([getattr(self, name), getattr(more, name)])
            for name in DrawPool.__dataclass_fields__
            if name != "starts"
        }
        starts = np.concatenate([self.starts, self.starts[-1] + more.starts[1:]])
        return DrawPool(starts=starts, **columns)


class PendingDraws(Sequence[Draw]):
    """The draws of a cursor in one array: objects for thousands of them would take milliseconds.

    Equal to a tuple of the same draws.
    """

    def __init__(self, components: LongArray, counters: LongArray) -> None:
        self.numbers = np.stack([components, counters], axis=1)

    @override
    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> Draw: ...
    @overload
    def __getitem__(self, place: slice) -> list[Draw]: ...
    @override
    def __getitem__(self, place: int | slice) -> Draw | list[Draw]:
        if isinstance(place, slice):
            return [Draw(*draw) for draw in self.numbers[place].tolist()]
        return Draw(*self.numbers[place].tolist())

    @override
    def __iter__(self) -> Iterator[Draw]:
        return (Draw(*draw) for draw in self.numbers.tolist())

    @override
    def __eq__(self, other: object) -> bool:
        if isinstance(other, PendingDraws):
            return np.array_equal(self.numbers, other.numbers)
        return tuple(self) == other

    @override
    def __hash__(self) -> int:
        return hash(tuple(self))

    @override
    def __repr__(self) -> str:
        return repr(tuple(self))


def draw_numbers(pending: Sequence[Draw]) -> tuple[LongArray, LongArray]:
    """The components and the counters of draws."""
    if isinstance(pending, PendingDraws):
        numbers = pending.numbers
    else:
        numbers = np.array(pending, np.int64).reshape(-1, 2)
    return numbers[:, 0].copy(), numbers[:, 1].copy()


class DrawLookup:
    """Looks (component, counter) draws up in the length index."""

    def __init__(self, mixture: Mixture, aux_groups: dict[str, int]) -> None:
        self.mixture, self.aux_groups = mixture, aux_groups
        self._groups: dict[int, IntArray] = {}

    def __call__(self, components: LongArray, counters: LongArray) -> DrawPool:
        """The draws with their examples and lengths."""
        examples = np.zeros(len(components), np.int64)
        uniforms = np.zeros(len(components))
        targets = np.zeros(len(components), np.int32)
        per_draw = np.zeros(len(components), np.int64)
        found: list[tuple[LongArray, IntArray, IntArray]] = []
        for number, chosen in group_places(components):
            component = self.mixture.components[number]
            examples[chosen] = component.indices(counters[chosen])
            uniforms[chosen] = component.uniforms(counters[chosen])
            sizes = component.sizes(examples[chosen], uniforms[chosen])
            lengths = sequence_lengths(component.objectives, sizes)
            targets[chosen] = sum(o.max_targets(sizes) for _, o in component.objectives)
            per_draw[chosen] = lengths.shape[1]
            if number not in self._groups:
                self._groups[number] = self._groups_of(component, sizes)
            found.append((chosen, lengths, self._groups[number]))
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
