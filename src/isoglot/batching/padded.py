"""Padded batches for encoder-decoders: one sequence per row, rows of similar length.

Mixture, draws and cursor are those of packed batches; only the last step differs. The planner sorts
the draws by length and cuts them into micro-batches whose tokens, padding and both sides included,
stay within `micro_rows × row_length`; draws that are not placed stay pending. It looks several
micro-batches ahead, so that rows of similar length come together.

    draws --sort by length, cut--> micro-batch plans --build--> sources (main rows) + decoding
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import torch
from numba import njit
from typing_extensions import override

from isoglot.batching.builder import BatchBuilder, PlacedSequence, RowBuffer, TargetCollector
from isoglot.batching.planner import Placement, Planner
from isoglot.corpus.storage.grouping import ascending_order, group_places
from isoglot.types import Batch, Decoding, LongArray, Seq2SeqBatch, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.batching.draws import DrawPool
    from isoglot.batching.mixture import Mixture, NamedObjectives, OpenStream
    from isoglot.batching.planner import BatchConfig, MicroBatchPlan
    from isoglot.batching.schedules import BatchWarmup
    from isoglot.objectives.base import Objective
    from isoglot.types import Example, IntArray, Rng

_Built = tuple[str, "Objective", Sequence, int]
"""(name, objective, sequence, number of the draw)."""

_MICRO_BATCHES_AHEAD = 8
"""Micro-batches for which draws are taken, at least."""

_SOURCE, _TARGET, _AUX = range(3)


def uses_padding(streams: Iterable[OpenStream]) -> bool:
    """Is one of these streams read by an objective with a decoder?"""
    return any(one.uses_decoder for stream in streams for _, one in stream.objectives)


def build_planner(
    mixture: Mixture,
    shape: BatchConfig,
    *,
    target_capacity: int | None,
    warmup: BatchWarmup | None = None,
) -> Planner:
    """The planner that a mixture's objectives need: packed or padded."""
    kind = PaddedPlanner if uses_padding(mixture.streams) else Planner
    return kind(mixture, shape, target_capacity=target_capacity, warmup=warmup)


class PaddedPlanner(Planner):
    """Plans micro-batches of sequences of similar length."""

    def __init__(
        self,
        mixture: Mixture,
        shape: BatchConfig,
        *,
        target_capacity: int | None,
        warmup: BatchWarmup | None = None,
    ) -> None:
        super().__init__(mixture, shape, target_capacity=target_capacity, warmup=warmup)
        self._budget = shape.micro_batch_rows * shape.row_length
        self._kinds = [
            _sequence_kinds(one.objectives, one.sample_sizes(1)) for one in mixture.components
        ]

    @override
    def _wanted_tokens(self, step: int) -> float:
        return max(super()._wanted_tokens(step), _MICRO_BATCHES_AHEAD * self._budget)

    @override
    def _place(self, pool: DrawPool, order: LongArray, num_micro: int) -> Placement:
        sizes = self._sizes(pool)
        longest = sizes[:, [1, 3]].max(axis=1)
        by_length = ascending_order(longest.max(initial=0) - longest)
        ends = _cut(by_length, sizes, self._budget)
        if len(ends) > 1 and 0 in by_length[ends[-2] :]:
            # the oldest draw is in the last bucket, which is not full: begin with the short ones
            by_length = by_length[::-1].copy()
            ends = _cut(by_length, sizes, self._budget)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        # buckets with the oldest draws first, so that no draw is pending forever; the last bucket,
        # which is not full, at the end
        full = np.argsort(np.minimum.reduceat(by_length, starts)[:-1], kind="stable")
        buckets = np.append(full, len(ends) - 1)[:num_micro]
        micro_batches = np.full(len(pool.components), -1, np.int64)
        for number, bucket in enumerate(buckets.tolist()):
            micro_batches[by_length[starts[bucket] : ends[bucket]]] = number
        unused = np.zeros(len(pool.lengths), np.int64)
        return Placement(micro_batches, unused, unused)

    def _sizes(self, pool: DrawPool) -> LongArray:
        """(draws, 4): number and greatest length of a draw's sources, then of its targets."""
        sizes = np.zeros((len(pool.components), 4), np.int64)
        for number, chosen in group_places(pool.components):
            kinds = self._kinds[number]
            lengths = pool.lengths[pool.starts[chosen][:, None] + np.arange(len(kinds))]
            for place, kind in ((0, _SOURCE), (2, _TARGET)):
                mine = kinds == kind
                sizes[chosen, place] = mine.sum()
                sizes[chosen, place + 1] = lengths[:, mine].max(axis=1, initial=0)
        return sizes


@njit(cache=True, nogil=True)
def _cut(
    order: LongArray, sizes: LongArray, budget: int
) -> LongArray:  # pragma: no cover - compiled
    """Cut draws in this order into buckets, each as large as the budget allows: where each ends."""
    ends = np.empty(len(order), np.int64)
    number = sources = longest = targets = longest_target = 0
    for place, draw in enumerate(order):
        sources, longest = sources + sizes[draw, 0], max(longest, sizes[draw, 1])
        targets, longest_target = targets + sizes[draw, 2], max(longest_target, sizes[draw, 3])
        if place > 0 and sources * longest + targets * longest_target > budget:
            ends[number] = place
            number += 1
            sources, longest = sizes[draw, 0], sizes[draw, 1]
            targets, longest_target = sizes[draw, 2], sizes[draw, 3]
    ends[number] = len(order)
    return ends[: number + 1].copy()


def _sequence_kinds(objectives: NamedObjectives, sizes: IntArray) -> LongArray:
    """The kind of each sequence of a draw: source, target or auxiliary."""
    kinds: list[int] = []
    for _, objective in objectives:
        number = objective.lengths(sizes).shape[1] - objective.num_aux_sequences
        main = [_SOURCE, _TARGET] if objective.uses_decoder else [_SOURCE] * number
        assert len(main) == number
        kinds += main + [_AUX] * objective.num_aux_sequences
    return np.array(kinds, np.int64)


class PaddedBatchBuilder(BatchBuilder):
    """Maps a `MicroBatchPlan` to a `Seq2SeqBatch`."""

    @override
    def build(self, plan: MicroBatchPlan) -> tuple[Seq2SeqBatch, list[PlacedSequence]]:
        sources: list[_Built] = []
        targets: list[_Built] = []
        aux: dict[str, list[_Built]] = {name: [] for name in self.num_aux_rows}
        source_rows: list[int] = []
        decoding = {n for s in self.mixture.streams for n, one in s.objectives if one.uses_decoder}
        for draw in range(len(plan.draws.components)):
            for name, objective, sequences in self._build_draw(plan, draw):
                num_sources = len(sequences) - objective.num_aux_sequences
                if name in decoding:
                    source_rows.append(len(sources))
                    targets.append((name, objective, sequences[1], draw))
                    num_sources = 1
                sources += [(name, objective, one, draw) for one in sequences[:num_sources]]
                if objective.num_aux_sequences:
                    last = sequences[-objective.num_aux_sequences :]
                    aux[name] += [(name, objective, one, draw) for one in last]
        collected, decoded = TargetCollector(), TargetCollector()
        placed: list[PlacedSequence] = []
        main = self._padded(sources, collected, placed)
        aux_buffers = {
            name: self._padded(of, collected, placed, is_aux=True) for name, of in aux.items()
        }
        decoder = self._padded(targets, decoded, placed, is_decoder=True)
        batch = self._batch(main, aux_buffers, collected, plan)
        positions, ids, slices = decoded.concatenate(
            name for name in batch.target_slices if name in decoding
        )
        num_targets = {name: stop - start for name, (start, stop) in slices.items()}
        same = {field.name: getattr(batch, field.name) for field in fields(Batch)}
        changed = {
            "num_targets": batch.num_targets | num_targets,
            "num_tokens": main.num_tokens + decoder.num_tokens,
        }
        decoding_rows = Decoding(
            rows=decoder.rows(),
            source_rows=torch.tensor(source_rows, dtype=torch.int64),
            target_positions=torch.from_numpy(positions),
            targets=torch.from_numpy(ids),
            target_slices=slices,
        )
        pad = self.vocabulary.pad
        return Seq2SeqBatch(**same | changed, pad=pad, decoding=decoding_rows), placed

    @override
    def _build(
        self, objective: Objective, example: Example, rng: Rng, plan: MicroBatchPlan
    ) -> tuple[Sequence, ...]:
        max_length = int(plan.draws.lengths.max())
        return objective.build_padded(example, self.vocabulary, rng, max_length)

    def _padded(
        self,
        built: list[_Built],
        collected: TargetCollector,
        placed: list[PlacedSequence],
        *,
        is_aux: bool = False,
        is_decoder: bool = False,
    ) -> RowBuffer:
        """Sequences in a buffer, one per row, as wide as the longest; `placed` gets each."""
        width = max((len(sequence) for _, _, sequence, _ in built), default=1)
        buffer = RowBuffer(len(built), width, self.vocabulary.pad)
        for row, (name, objective, sequence, draw) in enumerate(built):
            start = buffer.put(sequence, row, 0)
            one = PlacedSequence(name, objective, sequence, start, is_aux, is_decoder, draw)
            collected.collect(one, base_start=None)
            placed.append(one)
        return buffer
