"""Micro-batches in order, built ahead by workers, each with the cursor that follows its step.

torch's DataLoader only transports: its indices are plans, which the planner makes in a thread of
the main process, a step ahead, so prefetched batches are no part of the state. A checkpoint that
stores the cursor of the last trained step resumes bit for bit, at once, however far ahead the
workers were.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import warnings
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from isoglot.batching.builder import BatchBuilder
from isoglot.batching.mixture import Mixture, OpenStream
from isoglot.batching.padded import PaddedBatchBuilder, build_planner, uses_padding
from isoglot.batching.schedules import BatchWarmup, StageSchedules, with_highest_rate
from isoglot.errors import IsoglotError, RecipeError
from isoglot.ranges import Range, check_ranges
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isoglot.batching.planner import BatchConfig, MicroBatchPlan
    from isoglot.batching.streams import StreamConfig
    from isoglot.corpus import Corpus
    from isoglot.corpus.storage.shards import Split
    from isoglot.objectives.base import Objective
    from isoglot.types import Batch, IntArray

T = TypeVar("T")
_ALIGNED_BYTES = 16
"""Tensors of a shared buffer begin at multiples of so many bytes, more than any number has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderConfig:
    """How micro-batches are built ahead."""

    num_workers: Annotated[int, Range(0, 256)] = 0
    """Worker processes that build batches; 0 builds them in the training process."""
    prefetch_factor: Annotated[int, Range(1, 1024)] = 4
    """Micro-batches each worker keeps ready."""

    def __post_init__(self) -> None:
        check_ranges(self)


def open_streams(
    corpus: Corpus,
    streams: Mapping[str, StreamConfig],
    objectives: Mapping[str, Objective],
    *,
    row_length: int,
    split: Split = "train",
) -> tuple[OpenStream, ...]:
    """Open a stage's streams on a corpus, each with the objectives that read it.

    `objectives` has those that a stream trains and those that must only fit its rows.
    """
    opened = []
    for config in streams.values():
        chosen = tuple((name, objectives[name]) for name in config.objectives)
        names = dict.fromkeys((*config.objectives, *config.must_fit))
        sequence_length = partial(longest_sequence, [objectives[name] for name in names])
        found = config.open(
            corpus, split=split, sequence_length=sequence_length, row_length=row_length
        )
        slices = tuple(one for one in found if one.num_examples)
        read = {one.name for one in slices}
        opened.append(
            OpenStream(
                config=config,
                slices=slices,
                objectives=chosen,
                missing=tuple(
                    name for name in map("/".join, config.selected(corpus)) if name not in read
                ),
                unread=tuple(one for one in found if one.num_dropped and not one.num_examples),
            )
        )
    return tuple(opened)


def longest_sequence(objectives: Sequence[Objective], sizes: IntArray) -> IntArray:
    """(n, k) sizes of examples -> (n,) tokens or positions of the longest sequence of each."""
    lengths = [objective.lengths(sizes) for objective in objectives]
    positions = [objective.num_positions(sizes)[:, None] for objective in objectives]
    return np.asarray(np.hstack(lengths + positions).max(axis=1), np.int32)


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
        schedules: StageSchedules | None = None,
    ) -> None:
        self.rank, self.world = rank, world
        self.workers = workers or LoaderConfig()
        self.pin_memory = pin_memory
        warmup = None if schedules is None else schedules.batch_warmup
        check_shape(shape, world, streams, warmup)
        streams = with_highest_rate(streams, schedules)
        tokens = shape.micro_batch_rows * shape.row_length
        steps = 1 if schedules is None else schedules.steps
        self.mixture = Mixture(streams, seed=seed, stage=stage, steps=steps)
        padded = uses_padding(streams)
        capacity = _target_capacity(self.mixture, tokens) if pad_targets and not padded else None
        self.planner = build_planner(self.mixture, shape, target_capacity=capacity, warmup=warmup)
        self.builder = (PaddedBatchBuilder if padded else BatchBuilder)(
            self.mixture,
            corpus.vocabulary,
            micro_rows=shape.micro_batch_rows,
            row_length=shape.row_length,
            num_aux_rows=self.planner.num_aux_rows,
            target_capacity=capacity,
            seed=seed,
            stage=stage,
            schedules=schedules,
        )

    def steps(self, cursor: Cursor) -> Iterator[list[Batch]]:
        """This process's micro-batches of each step that follows a cursor, without end."""
        cursors: deque[Cursor] = deque()
        batches = self._load(self._plans(cursor, cursors))
        number = cursor.step
        while True:
            own = self.planner.num_micro(number) // self.world
            step, number = [next(batches) for _ in range(own)], number + 1
            following = cursors.popleft()
            yield [replace(batch, cursor=following) for batch in step]

    def _plans(self, cursor: Cursor, cursors: deque[Cursor]) -> Iterator[MicroBatchPlan]:
        """This process's plans, without their cursors, which stay here, one for each step.

        A cursor has thousands of pending draws: sending it to a worker and back with each
        micro-batch would take longer than planning the step.
        """
        for step in one_ahead(self.planner.steps(cursor, rank=self.rank, world=self.world)):
            cursors.append(step[0].cursor)
            for plan in step:
                yield replace(plan, cursor=Cursor())

    def single_pass(self, max_examples: int) -> Iterator[Batch]:
        """Every example once, at most `max_examples` of each component; this process's share."""
        for batch, is_own in self.single_pass_together(max_examples):
            if is_own:
                yield batch

    def single_pass_together(self, max_examples: int) -> Iterator[tuple[Batch, bool]]:
        """`single_pass` with as many micro-batches on every process: is one in its share?"""
        plans = self.planner.single_pass(max_examples)
        while of_all := list(islice(plans, self.world)):
            is_own = self.rank < len(of_all)
            yield self.builder[of_all[self.rank if is_own else -1]], is_own

    def _load(self, plans: Iterator[MicroBatchPlan]) -> Iterator[Batch]:
        workers = self.workers.num_workers
        with warnings.catch_warnings():
            # of more workers than cores, once for each stage: `worker_note` says it once for a run
            warnings.filterwarnings("ignore", message="This DataLoader will create")
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
            return _in_own_words(batches)
        return batches


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """The items of an iterator without end; a thread makes the next one while one is used.

    The thread begins with the first item, after loader workers were forked, and ends with the
    generator.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="isoglot-ahead") as thread:
        coming = thread.submit(next, items)
        while True:
            item = coming.result()
            coming = thread.submit(next, items)
            yield item


def worker_note(config: LoaderConfig, num_processes: int, *, on_gpu: bool = False) -> str | None:
    """A sentence if a machine's loader workers are more than its cores, or a GPU has none."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    workers = config.num_workers * num_processes
    advised = min(4, (cores or 1) // num_processes)
    if on_gpu and not workers and advised > 1:
        return (
            "loader.num_workers: 0 builds batches in the training process, and a GPU with a small "
            f"model waits for them: --set loader.num_workers={advised} "
            "gives the same batches sooner."
        )
    if not cores or workers <= cores:
        return None
    return (
        f"loader.num_workers: {workers} workers share {cores} cores of this machine, which builds "
        f"batches no faster than {max(cores // num_processes, 1)} for each process."
    )


def check_shape(
    shape: BatchConfig,
    world: int,
    streams: tuple[OpenStream, ...],
    warmup: BatchWarmup | None = None,
) -> None:
    """Every step must divide evenly, and a micro-batch hold all sequences of any one draw."""
    micro_rows = shape.micro_batch_rows
    if shape.rows % (micro_rows * world):
        raise RecipeError(
            f"batch.rows = {shape.rows} does not divide into micro-batches of {micro_rows} "
            f"rows on {world} process{'es' if world > 1 else ''}. Choose batch.rows as a multiple "
            f"of batch.micro_rows × processes = {micro_rows * world}."
        )
    if warmup is not None:
        warmup.check(shape.rows)
        if warmup.start_rows % (micro_rows * world) or warmup.step_size % (micro_rows * world):
            raise RecipeError(
                f"batch_warmup: start_rows = {warmup.start_rows} and increment = "
                f"{warmup.step_size} must be multiples of batch.micro_rows × processes = "
                f"{micro_rows * world}."
            )
    for stream in streams:
        if stream.slices and (number := int(stream.in_main_rows().sum())) > micro_rows:
            raise RecipeError(
                f"batch.micro_rows = {micro_rows} cannot hold the {number} sequences that "
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


def _in_own_words(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The batches; of an error in a worker, to which torch adds its traceback, the sentence."""
    try:
        yield from batches
    except IsoglotError as error:
        _, found, sentence = str(error).rpartition(f"{type(error).__name__}: ")
        if not found:
            raise
        raise IsoglotError(sentence.strip()) from error


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
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()
