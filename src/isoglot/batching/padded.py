"""Padded batches for encoder-decoders: sequences of about one length, one a row, instead of rows.

Same mixture, same draws, same cursor; only the last step differs. The planner sorts the draws it
has taken by length and cuts them into micro-batches whose tokens, padding and both sides included,
stay within `micro_rows × row_length`; what is not used in this step waits, as in packing. It takes
draws for several micro-batches ahead, for lengths to find their like.

    draws --sort by length, cut--> micro-batch plans --build--> sources (main rows) + decoding
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import torch
from typing_extensions import override

from isoglot.batching.builder import Builder, Canvas, Found
from isoglot.batching.planner import MicroPlan, Planner
from isoglot.types import Batch, Cursor, Decoding, LongArray, Seq2SeqBatch, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.batching.mixture import Makers, Mixture, OpenStream
    from isoglot.batching.planner import BatchConfig
    from isoglot.batching.pool import Pool
    from isoglot.batching.streams import SequenceMaker
    from isoglot.types import BoolArray, Example, IntArray

Made = tuple[str, "SequenceMaker", Sequence]
"""An objective's name, its data half, and a sequence that it has made."""

_AHEAD = 8
"""Micro-batches that draws are taken for, at the least."""

_SOURCE, _TARGET, _SIDE = range(3)


def is_padded(streams: Iterable[OpenStream]) -> bool:
    """Are these streams read by an objective that decodes?"""
    return any(maker.decodes for stream in streams for _, maker in stream.makers)


def planner_of(mixture: Mixture, shape: BatchConfig, *, site_capacity: int | None) -> Planner:
    """The planner that a mixture's objectives need."""
    kind = PaddedPlanner if is_padded(mixture.streams) else Planner
    return kind(mixture, shape, site_capacity=site_capacity)


class PaddedPlanner(Planner):
    """Plans micro-batches of sequences of about one length."""

    def __init__(self, mixture: Mixture, shape: BatchConfig, *, site_capacity: int | None) -> None:
        super().__init__(mixture, shape, site_capacity=site_capacity)
        self._budget = shape.micro_rows * shape.row_length
        self._wanted = max(self._wanted, _AHEAD * self._budget)
        self._roles = [_roles(cell.makers, cell.sample(1)) for cell in mixture.cells]

    @override
    def _place(self, pool: Pool, order: LongArray) -> tuple[list[MicroPlan], BoolArray]:
        sizes = self._sizes(pool)
        by_length = np.argsort(-sizes[:, [1, 3]].max(axis=1), kind="stable")
        buckets = self._cut(by_length, sizes)
        if len(buckets) > 1 and 0 in buckets[-1]:
            # the last one is not full: begin with the short ones where the oldest draw is there
            buckets = self._cut(by_length[::-1], sizes)
        full, rest = buckets[:-1], buckets[-1:]
        # those with the oldest draws, so that none waits for ever
        chosen = (sorted(full, key=min) + rest)[: self.num_micro]
        left = np.ones(len(pool.cells), np.bool_)
        plans = []
        for number in range(self.num_micro):
            draws = np.sort(np.array(chosen[number] if number < len(chosen) else [], np.int64))
            left[draws] = False
            plans.append(_plan(pool[draws]))
        return plans, left

    def _sizes(self, pool: Pool) -> LongArray:
        """(draws, 4): number and greatest length of a draw's sources, then of its targets."""
        roles = np.concatenate([self._roles[cell] for cell in pool.cells.tolist()])
        owner = np.repeat(np.arange(len(pool.cells)), np.diff(pool.starts))
        sizes = np.zeros((len(pool.cells), 4), np.int64)
        for place, role in ((0, _SOURCE), (2, _TARGET)):
            mine = roles == role
            np.add.at(sizes[:, place], owner[mine], 1)
            np.maximum.at(sizes[:, place + 1], owner[mine], pool.lengths[mine])
        return sizes

    def _cut(self, order: LongArray, sizes: LongArray) -> list[list[int]]:
        """Micro-batches of draws in this order, each as large as may be."""
        buckets: list[list[int]] = []
        sources = longest = targets = longest_target = 0
        for draw, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
            sources, longest = sources + size[0], max(longest, size[1])
            targets, longest_target = targets + size[2], max(longest_target, size[3])
            padded = sources * longest + targets * longest_target
            if not buckets or padded > self._budget:
                buckets.append([])
                sources, longest, targets, longest_target = size
            buckets[-1].append(draw)
        return buckets


def _plan(draws: Pool) -> MicroPlan:
    nowhere = np.zeros(len(draws.lengths), np.int64)
    return MicroPlan(
        cells=draws.cells,
        counters=draws.counters,
        examples=draws.examples,
        chances=draws.chances,
        starts=draws.starts,
        rows=nowhere,
        offsets=nowhere,
        lengths=draws.lengths,
        cursor=Cursor(),
    )


def _roles(makers: Makers, sizes: IntArray) -> LongArray:
    """What each sequence of a draw is: a source, a target or a side row."""
    roles: list[int] = []
    for _, maker in makers:
        number = maker.lengths(sizes).shape[1] - maker.num_side
        main = [_SOURCE, _TARGET] if maker.decodes else [_SOURCE] * number
        assert len(main) == number
        roles += main + [_SIDE] * maker.num_side
    return np.array(roles, np.int64)


class PaddedBuilder(Builder):
    """Maps a `MicroPlan` to a `Seq2SeqBatch`."""

    @override
    def __getitem__(self, plan: MicroPlan) -> Seq2SeqBatch:
        sources: list[Made] = []
        targets: list[Made] = []
        sides: dict[str, list[Made]] = {name: [] for name in self.side_rows}
        reads: list[int] = []
        decoding = {name for s in self.mixture.streams for name, m in s.makers if m.decodes}
        for draw in range(len(plan.cells)):
            for name, maker, sequences in self._build(plan, draw):
                number = len(sequences) - maker.num_side
                if name in decoding:
                    reads.append(len(sources))
                    targets.append((name, maker, sequences[1]))
                    number = 1
                sources += [(name, maker, sequence) for sequence in sequences[:number]]
                if maker.num_side:
                    on_side = sequences[-maker.num_side :]
                    sides[name] += [(name, maker, sequence) for sequence in on_side]
        found, written = Found(), Found()
        main = self._laid(sources, found, on_side=False)
        canvases = {name: self._laid(side, found, on_side=True) for name, side in sides.items()}
        decoder = self._laid(targets, written, on_side=False)
        batch = self._batch(main, canvases, found, plan)
        names = [name for name in batch.spans if name in decoding]
        positions, ids, spans = written.listed(names)
        same = {field.name: getattr(batch, field.name) for field in fields(Batch)}
        changed = {
            "counts": batch.counts | {name: stop - start for name, (start, stop) in spans.items()},
            "num_tokens": main.num_tokens + decoder.num_tokens,
        }
        return Seq2SeqBatch(
            **same | changed,
            pad=self.vocabulary.pad,
            decoding=Decoding(
                rows=decoder.rows(),
                sources=torch.tensor(reads, dtype=torch.int64),
                positions=torch.from_numpy(positions),
                targets=torch.from_numpy(ids),
                spans=spans,
            ),
        )

    @override
    def _sequences(
        self, maker: SequenceMaker, example: Example, rng: np.random.Generator, plan: MicroPlan
    ) -> tuple[Sequence, ...]:
        longest = int(plan.lengths.max())
        return maker.build_beside(example, self.vocabulary, rng, longest)

    def _laid(self, made: list[Made], found: Found, *, on_side: bool) -> Canvas:
        """Sequences on a canvas, one a row, as wide as the longest."""
        width = max((len(sequence) for *_, sequence in made), default=1)
        canvas = Canvas(len(made), width, self.vocabulary.pad)
        for row, (name, maker, sequence) in enumerate(made):
            start = canvas.put(sequence, row, 0)
            found.note(name, maker, sequence, start, on_side=on_side, host=None)
        return canvas
