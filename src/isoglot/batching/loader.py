"""Micro-batches in order, built ahead by workers, each carrying the cursor that follows its step.

torch's DataLoader is only the carrier: plans are its indices and come from the planner in the main
process, so what a worker has prefetched is never part of the state. A checkpoint that stores the
cursor of the last step trained on resumes bit for bit, at once, however far workers were ahead.
"""

from __future__ import annotations

import atexit
import gc
import signal
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from torch.utils.data import DataLoader, Sampler

from isoglot.batching.builder import Builder
from isoglot.batching.mixture import Mixture, OpenStream
from isoglot.batching.one_piece import in_one_piece
from isoglot.batching.padded import PaddedBuilder, is_padded, planner_of
from isoglot.errors import CorpusError, RecipeError, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isoglot.batching.planner import BatchConfig, MicroPlan, Planner
    from isoglot.batching.streams import SequenceMaker, StreamConfig
    from isoglot.corpus import Corpus
    from isoglot.corpus.heldout import Split
    from isoglot.types import Batch, Cursor, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderConfig:
    """How micro-batches are built ahead."""

    workers: int = 0
    """Worker processes that build batches; 0 builds them in the training process."""
    prefetch: int = 4
    """Micro-batches each worker keeps ready."""

    def __post_init__(self) -> None:
        require(self.workers >= 0, "loader.workers must not be negative")
        require(self.prefetch >= 1, "loader.prefetch must be 1 or more")


def open_streams(
    corpus: Corpus,
    streams: Mapping[str, StreamConfig],
    makers: Mapping[str, SequenceMaker],
    *,
    row_length: int,
    split: Split = "train",
) -> tuple[OpenStream, ...]:
    """Open a stage's streams on a corpus, each with the objectives that read it."""
    opened = []
    for config in streams.values():
        chosen = tuple((name, makers[name]) for name in config.objectives)

        def longest(
            sizes: IntArray, chosen: tuple[tuple[str, SequenceMaker], ...] = chosen
        ) -> IntArray:
            lengths = [maker.lengths(sizes) for _, maker in chosen]
            reaches = [maker.reach(sizes)[:, None] for _, maker in chosen]
            return np.asarray(np.hstack(lengths + reaches).max(axis=1), np.int32)

        parts = config.open(corpus, split=split, longest=longest, row_length=row_length)
        found = {part.name for part in parts}
        missing = [name for name in config.selected(corpus) if "/".join(name) not in found]
        if split == "train":
            _refuse_missing(config, missing, {part.language for part in parts})
        names = tuple(map("/".join, missing))
        opened.append(OpenStream(config=config, parts=parts, makers=chosen, missing=names))
    return tuple(opened)


def left_out(streams: tuple[OpenStream, ...], row_length: int) -> Iterator[str]:
    """A sentence for every part that is not read whole."""
    for stream in streams:
        for name in stream.missing:
            yield f"{stream.config.kind}/{name}: none of its examples is read."
        for part in stream.parts:
            if part.num_dropped:
                yield (
                    f"{stream.config.kind}/{part.name}: {part.num_dropped:,} of "
                    f"{part.num_dropped + part.num_examples:,} examples are left out, "
                    f"{part.why_dropped.format(row_length=row_length)}."
                )


def _refuse_missing(config: StreamConfig, missing: list[tuple[str, str]], read: set[str]) -> None:
    """A language that was asked for by name must be read from some source."""
    for source, language in missing:
        if language in config.languages and language not in read:
            raise CorpusError(
                f"stream {config.kind!r}: nothing of {source}/{language} is left to read, and "
                f"{language!r} was asked for. Look at the source's files and at the stream's "
                "limits on length, or leave the language out."
            )


class Loader:
    """The batches of one stage for one process."""

    def __init__(
        self,
        corpus: Corpus,
        streams: tuple[OpenStream, ...],
        shape: BatchConfig,
        *,
        seed: int = 0,
        stage: int = 0,
        rank: int = 0,
        world: int = 1,
        workers: LoaderConfig | None = None,
        fixed_sites: bool = False,
        pin_memory: bool = False,
    ) -> None:
        self.rank, self.world = rank, world
        self.workers = workers or LoaderConfig()
        self.pin_memory = pin_memory
        check_shape(shape, world, streams)
        tokens = shape.micro_rows * shape.row_length
        self.mixture = Mixture(streams, seed=seed, stage=stage)
        padded = is_padded(streams)
        capacity = _capacity(self.mixture, tokens) if fixed_sites and not padded else None
        self.planner = planner_of(self.mixture, shape, site_capacity=capacity)
        self.builder = (PaddedBuilder if padded else Builder)(
            self.mixture,
            corpus.vocabulary,
            micro_rows=shape.micro_rows,
            row_length=shape.row_length,
            side_rows=self.planner.side_rows,
            site_capacity=capacity,
            seed=seed,
            stage=stage,
        )

    def steps(self, cursor: Cursor) -> Iterator[list[Batch]]:
        """This process's micro-batches of each step that follows a cursor, without end."""
        mine = self.planner.num_micro // self.world
        batches = self._carry(_Plans(self.planner, cursor, self.rank, self.world))
        while True:
            yield [next(batches) for _ in range(mine)]

    def once(self, most: int) -> Iterator[Batch]:
        """Every example once, at most `most` of each cell, shared out over the processes."""
        for number, plan in enumerate(self.planner.once(most)):
            if number % self.world == self.rank:
                yield self.builder[plan]

    def _carry(self, plans: _Plans) -> Iterator[Batch]:
        loader = DataLoader(
            self.builder,
            batch_size=None,
            sampler=cast("Sampler[int]", plans),
            num_workers=self.workers.workers,
            prefetch_factor=self.workers.prefetch if self.workers.workers else None,
            collate_fn=cast("Any", in_one_piece) if self.workers.workers else _as_it_is,
            pin_memory=self.pin_memory,
            worker_init_fn=_begin_worker,
        )
        batches = iter(loader)
        if self.workers.workers:
            _stop_workers_at_exit(batches)
        return batches


class _Plans:
    """The plans of this process's micro-batches: micro-batch m belongs to process m mod world."""

    def __init__(self, planner: Planner, cursor: Cursor, rank: int, world: int) -> None:
        self.planner, self.cursor, self.rank, self.world = planner, cursor, rank, world

    def __iter__(self) -> Iterator[MicroPlan]:
        for plans in self.planner.steps(self.cursor):
            yield from plans[self.rank :: self.world]


def check_shape(shape: BatchConfig, world: int, streams: tuple[OpenStream, ...]) -> None:
    """A step must divide evenly, and a micro-batch hold all sequences of any one draw."""
    if shape.rows % (shape.micro_rows * world):
        raise RecipeError(
            f"batch.rows = {shape.rows} does not divide into micro-batches of {shape.micro_rows} "
            f"rows on {world} process{'es' if world > 1 else ''}. Choose batch.rows as a multiple "
            f"of batch.micro_rows × processes = {shape.micro_rows * world}."
        )
    for stream in streams:
        if stream.parts and (number := int(stream.main().sum())) > shape.micro_rows:
            raise RecipeError(
                f"batch.micro_rows = {shape.micro_rows} cannot hold the {number} sequences that "
                f"the stream {stream.config.kind!r} makes of one draw: set it to {number} or more."
            )


def _capacity(mixture: Mixture, tokens: int) -> int:
    """Prediction sites that a micro-batch of any mix of the streams needs, in multiples of 64."""
    highest = 0.0
    for cell in mixture.cells:
        stream = mixture.streams[cell.stream]
        sizes = cell.sample(4096)
        targets = sum(maker.max_targets(sizes).sum() for _, maker in stream.makers)
        highest = max(highest, float(targets / stream.lengths(sizes)[:, stream.main()].sum()))
    return 64 * int(np.ceil(1.02 * highest * tokens / 64))


def _as_it_is(batch: Any) -> Any:
    return batch


def _stop_workers_at_exit(batches: Any) -> None:
    """Tell workers to end when the process does, even if it ends by an exception.

    The traceback then keeps the iterator alive, and multiprocessing would end the workers with a
    signal that they ignore and wait for them for ever.
    """
    alive = weakref.ref(batches)

    def stop() -> None:
        if (left := alive()) is not None:
            left._shutdown_workers()  # noqa: SLF001

    atexit.register(stop)


def _begin_worker(_: int) -> None:
    """What a worker does first.

    A signal may reach the whole process group, and only the training process acts on it. What the
    worker was born with is set aside from garbage collection, which would copy all of it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    gc.freeze()
