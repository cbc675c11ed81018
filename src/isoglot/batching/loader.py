"""Micro-batches in order, built ahead by workers, each with the cursor that follows its step.

torch's DataLoader only transports: its indices are plans, which the planner makes in the main
process, so prefetched batches are no part of the state. A checkpoint that stores the cursor of the
last trained step resumes bit for bit, at once, however far ahead the workers were.
"""

from __future__ import annotations

import atexit
import gc
import signal
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from isoglot.batching.builder import BatchBuilder
from isoglot.batching.mixture import Mixture, NamedObjectives, OpenStream
from isoglot.batching.padded import PaddedBatchBuilder, build_planner, uses_padding
from isoglot.errors import CorpusError, RecipeError, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isoglot.batching.planner import BatchConfig, MicroBatchPlan
    from isoglot.batching.streams import StreamConfig
    from isoglot.corpus import Corpus
    from isoglot.corpus.storage.shards import Split
    from isoglot.objectives.base import Objective
    from isoglot.types import Batch, Cursor, IntArray

_ALIGNED_BYTES = 16
"""Tensors of a shared buffer begin at multiples of so many bytes, more than any number has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderConfig:
    """How micro-batches are built ahead."""

    num_workers: int = 0
    """Worker processes that build batches; 0 builds them in the training process."""
    prefetch_factor: int = 4
    """Micro-batches each worker keeps ready."""

    def __post_init__(self) -> None:
        require(self.num_workers >= 0, "loader.num_workers must not be negative")
        require(self.prefetch_factor >= 1, "loader.prefetch_factor must be 1 or more")


def open_streams(
    corpus: Corpus,
    streams: Mapping[str, StreamConfig],
    objectives: Mapping[str, Objective],
    *,
    row_length: int,
    split: Split = "train",
) -> tuple[OpenStream, ...]:
    """Open a stage's streams on a corpus, each with the objectives that read it."""
    opened = []
    for config in streams.values():
        chosen = tuple((name, objectives[name]) for name in config.objectives)

        def sequence_length(sizes: IntArray, chosen: NamedObjectives = chosen) -> IntArray:
            lengths = [objective.lengths(sizes) for _, objective in chosen]
            positions = [objective.num_positions(sizes)[:, None] for _, objective in chosen]
            return np.asarray(np.hstack(lengths + positions).max(axis=1), np.int32)

        slices = config.open(
            corpus, split=split, sequence_length=sequence_length, row_length=row_length
        )
        found = {one.name for one in slices}
        missing = [name for name in config.selected(corpus) if "/".join(name) not in found]
        if split == "train":
            read = {one.language for one in slices}
            for source, language in missing:
                if language in config.languages and language not in read:
                    raise CorpusError(
                        f"stream {config.kind!r}: {source}/{language} has no example left to read, "
                        f"and the stream's languages name {language!r}. Check the source's files "
                        "and the stream's limits on length, or remove the language."
                    )
        names = tuple(map("/".join, missing))
        opened.append(OpenStream(config=config, slices=slices, objectives=chosen, missing=names))
    return tuple(opened)


def describe_dropped(streams: tuple[OpenStream, ...], row_length: int) -> Iterator[str]:
    """A sentence for every slice of which examples are not read."""
    for stream in streams:
        for name in stream.missing:
            yield f"{stream.config.kind}/{name}: none of its examples is read."
        for one in stream.slices:
            if one.num_dropped:
                yield (
                    f"{stream.config.kind}/{one.name}: {one.num_dropped:,} of "
                    f"{one.num_dropped + one.num_examples:,} examples are dropped, "
                    f"{one.drop_reason.format(row_length=row_length)}."
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
        pad_targets: bool = False,
        pin_memory: bool = False,
    ) -> None:
        self.rank, self.world = rank, world
        self.workers = workers or LoaderConfig()
        self.pin_memory = pin_memory
        check_shape(shape, world, streams)
        tokens = shape.micro_rows * shape.row_length
        self.mixture = Mixture(streams, seed=seed, stage=stage)
        padded = uses_padding(streams)
        capacity = _target_capacity(self.mixture, tokens) if pad_targets and not padded else None
        self.planner = build_planner(self.mixture, shape, target_capacity=capacity)
        self.builder = (PaddedBatchBuilder if padded else BatchBuilder)(
            self.mixture,
            corpus.vocabulary,
            micro_rows=shape.micro_rows,
            row_length=shape.row_length,
            num_aux_rows=self.planner.num_aux_rows,
            target_capacity=capacity,
            seed=seed,
            stage=stage,
        )

    def steps(self, cursor: Cursor) -> Iterator[list[Batch]]:
        """This process's micro-batches of each step that follows a cursor, without end."""
        own = self.planner.num_micro // self.world
        # micro-batch m of a step belongs to process m mod world
        steps = self.planner.steps(cursor)
        batches = self._load(plan for step in steps for plan in step[self.rank :: self.world])
        while True:
            yield [next(batches) for _ in range(own)]

    def single_pass(self, max_examples: int) -> Iterator[Batch]:
        """Every example once, at most `max_examples` of each component; this process's share."""
        for number, plan in enumerate(self.planner.single_pass(max_examples)):
            if number % self.world == self.rank:
                yield self.builder[plan]

    def _load(self, plans: Iterator[MicroBatchPlan]) -> Iterator[Batch]:
        workers = self.workers.num_workers
        loader = DataLoader(
            self.builder,
            batch_size=None,
            sampler=cast("Sampler[int]", plans),
            num_workers=workers,
            prefetch_factor=self.workers.prefetch_factor if workers else None,
            collate_fn=cast("Any", to_shared_buffer) if workers else _unchanged,
            pin_memory=self.pin_memory,
            worker_init_fn=_start_worker,
        )
        batches = iter(loader)
        if workers:
            _stop_workers_at_exit(batches)
        return batches


def check_shape(shape: BatchConfig, world: int, streams: tuple[OpenStream, ...]) -> None:
    """A step must divide evenly, and a micro-batch hold all sequences of any one draw."""
    if shape.rows % (shape.micro_rows * world):
        raise RecipeError(
            f"batch.rows = {shape.rows} does not divide into micro-batches of {shape.micro_rows} "
            f"rows on {world} process{'es' if world > 1 else ''}. Choose batch.rows as a multiple "
            f"of batch.micro_rows × processes = {shape.micro_rows * world}."
        )
    for stream in streams:
        if stream.slices and (number := int(stream.in_main_rows().sum())) > shape.micro_rows:
            raise RecipeError(
                f"batch.micro_rows = {shape.micro_rows} cannot hold the {number} sequences that "
                f"the stream {stream.config.kind!r} makes of one draw: set it to {number} or more."
            )


def _target_capacity(mixture: Mixture, tokens: int) -> int:
    """Target positions that a micro-batch of any mix of the streams needs, a multiple of 64."""
    highest = 0.0
    for component in mixture.components:
        stream = mixture.streams[component.stream]
        sizes = component.sample_sizes(4096)
        targets = sum(objective.max_targets(sizes).sum() for _, objective in stream.objectives)
        main = stream.lengths(sizes)[:, stream.in_main_rows()].sum()
        highest = max(highest, float(targets / main))
    return 64 * int(np.ceil(1.02 * highest * tokens / 64))


def to_shared_buffer(batch: Batch) -> Batch:
    """The batch with all tensors in a single shared buffer, to reach the training process at once.

    torch passes every buffer on by itself and asks the worker for it, which is busy building the
    next batch: with ten buffers per batch, the training process would wait ten times.
    """
    tensors: list[Tensor] = []

    def collect(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    batch.map(collect)
    sizes = [-(-tensor.nbytes // _ALIGNED_BYTES) * _ALIGNED_BYTES for tensor in tensors]
    parts = iter(torch.empty(sum(sizes), dtype=torch.uint8).split(sizes))

    def copy(tensor: Tensor) -> Tensor:
        part: Tensor = next(parts)[: tensor.nbytes]
        return part.view(tensor.dtype).view(tensor.shape).copy_(tensor)

    return batch.map(copy)


def _unchanged(batch: Any) -> Any:
    return batch


def _stop_workers_at_exit(batches: Any) -> None:
    """Shut workers down at exit, also after an exception.

    The traceback keeps the iterator alive then, and multiprocessing would send the workers a signal
    that they ignore and wait for them forever.
    """
    alive = weakref.ref(batches)

    def stop() -> None:
        if (left := alive()) is not None:
            left._shutdown_workers()  # noqa: SLF001

    atexit.register(stop)


def _start_worker(_: int) -> None:
    """Ignore signals, which only the training process handles, and freeze inherited objects.

    Garbage collection of objects inherited by fork would copy their memory.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    gc.freeze()
