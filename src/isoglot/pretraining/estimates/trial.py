"""Steps of a run on trial: how long they take and how much memory, by number of rows at a time.

It runs in a process of its own (`trial_process.py`), builds the run's model in a scratch folder
and takes steps there. The run itself sees none of it.

The learning rate is 0, so that many steps do not lead anywhere; everything else, the optimizer's
moments, queues and momentum encoders included, is the run's.
"""

from __future__ import annotations

import gc
import math
import os
import shutil
import time
from dataclasses import dataclass, replace
from statistics import mean
from typing import TYPE_CHECKING

import torch
from accelerate.utils import broadcast_object_list
from rich.console import Console

from isoglot.corpus import Corpus
from isoglot.pretraining.accumulation import compared_over_step
from isoglot.pretraining.build import RunRequest, build_run
from isoglot.pretraining.checkpoints.checkpoint_saver import CheckpointSaver
from isoglot.pretraining.estimates.costs import RunCosts, StageCosts
from isoglot.pretraining.estimates.micro_rows import SizeTrial
from isoglot.pretraining.memory import limit_memory, peak_memory, start_peak, used_memory
from isoglot.pretraining.monitoring.validation import Validation
from isoglot.pretraining.monitoring.writers import MetricsFile, step_record
from isoglot.pretraining.processes.interruptions import StopSignal
from isoglot.pretraining.processes.waiting import wait_for_all
from isoglot.pretraining.queue_warmup import seconds_to_warm_up
from isoglot.pretraining.run import Run
from isoglot.pretraining.runtime import (
    StepSchedule,
    compile_and_wrap,
    compiles,
    make_accelerator,
)
from isoglot.pretraining.stage_data import make_loader, open_stage
from isoglot.pretraining.train_step import StageContext, training_steps
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from isoglot.batching.mixture import OpenStream
    from isoglot.pretraining.config import PretrainConfig
    from isoglot.pretraining.estimates.trial_process import TrialSpec

_WHOLE_STEP = 4
"""Micro-batches of a step that are run as they are; of longer steps 1 and 3 are, and the rest is
calculated: a step takes a + b × micro-batches."""
_WARMUP_STEPS = 2
"""Steps that are not timed: the first one compiles, allocates and starts loader workers."""
_FEW, _SOME = 1, 3
"""Micro-batches of the two."""
_MIN_STEPS, _MAX_STEPS = 3, 2000
_FOREVER = 10**9
_UNINTERRUPTED = StepSchedule(last_step=_FOREVER, validate_every=0, save_every=0, export_every=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepTimes:
    """Times of the steps of one stage."""

    first_seconds: float
    seconds: list[float]
    tokens: float
    """Tokens of one step, over all processes."""


class Trial:
    """A run on trial: `size` tries a number of rows, `costs` measures everything with one."""

    def __init__(self, spec: TrialSpec) -> None:
        self._spec = spec
        config = _on_trial(spec.config, spec.steps)
        accelerator = make_accelerator(config, spec.scratch)
        self.used_bytes = used_memory(accelerator.device)
        """Before anything is built."""
        if spec.max_bytes is not None:
            limit_memory(accelerator.device, spec.max_bytes)
        started = time.perf_counter()
        self._context = build_run(
            RunRequest(
                recipe=config,
                corpus=Corpus.open(spec.corpus, verify="never"),
                folder=spec.scratch,
                name="trial",
                console=Console(quiet=True),
                accelerator=accelerator,
            )
        )
        self.build_seconds = time.perf_counter() - started
        self._accelerator, self._device = accelerator, accelerator.device
        self._buckets: torch.Tensor | None = None
        """In the place of DDP's, where one process of several is tried by itself."""
        if spec.num_processes > accelerator.num_processes:
            number = sum(one.numel() for one in self._context.module.parameters())
            self._buckets = torch.zeros(number, device=self._device)
        self._wrapped = compile_and_wrap(self._context.module, config, accelerator)
        self._compiles = compiles(config, accelerator.device)

    def smallest(self) -> int:
        """Rows that the sequences of one draw need at least."""
        opened = [open_stage(self._context, stage) for stage in range(len(self._spec.steps))]
        streams = [stream for of_stage in opened for stream in of_stage if stream.slices]
        return max(int(stream.in_main_rows().sum()) for stream in streams)

    def size(self, micro_rows: int, seconds: float) -> SizeTrial:
        """Time steps of every stage with so many rows at a time."""
        run = self._run(micro_rows)
        start_peak(self._device)
        total_seconds = total_tokens = 0.0
        for stage, weight in self._stages(run):
            opened = open_stage(run.context, stage.stage)
            found = self._times(run, stage, opened, seconds / len(self._spec.steps))
            # the fastest step is the one that other processes of the machine disturbed least
            total_seconds += weight * min(found.seconds)
            total_tokens += weight * found.tokens
        peak = peak_memory(self._device)
        self.forget()
        return SizeTrial(
            micro_rows=micro_rows,
            tokens_per_second=total_tokens / total_seconds,
            peak_bytes=peak,
        )

    def costs(self, micro_rows: int, seconds: float) -> RunCosts:
        """Measure steps, validations, a checkpoint and the export."""
        run = self._run(micro_rows)
        start_peak(self._device)
        stages: list[StageCosts] = []
        compile_seconds = 0.0
        optimizer: torch.optim.Optimizer | None = None
        for stage, weight in self._stages(run):
            share = weight / sum(self._spec.steps)
            costs, compiling = self._stage_costs(run, stage, share * seconds, first=not stages)
            stages.append(costs)
            compile_seconds, optimizer = compile_seconds + compiling, stage.optimizer
        assert optimizer is not None
        peak = peak_memory(self._device)
        pause, writing, checkpoint_bytes = self._checkpoint(run, optimizer)
        export_seconds, export_bytes = self._export(run)
        self.forget()
        return RunCosts(
            build_seconds=self.build_seconds,
            compile_seconds=compile_seconds,
            stages=tuple(stages),
            peak_bytes=peak,
            checkpoint_seconds=pause,
            checkpoint_write_seconds=writing,
            checkpoint_bytes=checkpoint_bytes,
            export_seconds=export_seconds,
            export_bytes=export_bytes,
        )

    def _stage_costs(
        self, run: Run, stage: StageContext, seconds: float, *, first: bool
    ) -> tuple[StageCosts, float]:
        """What a stage costs, and how much longer its first step takes than others."""
        began = time.perf_counter()
        opened = open_stage(run.context, stage.stage)
        validation = Validation(run.context, run.config.stages[stage.stage])
        open_seconds = time.perf_counter() - began
        open_seconds += seconds_to_warm_up(run.context, stage, opened)
        if self._compiles and first:
            self._times(run, stage, opened, 0.0)
            torch.compiler.reset()  # the kernels are on disk now, as they will be for the run
        found = self._times(run, stage, opened, seconds)
        times = [_clocked(lambda: validation(run.module)) for _ in range(1 + self._compiles)]
        costs = StageCosts(
            open_seconds=open_seconds,
            step_seconds=mean(found.seconds),
            step_tokens=found.tokens,
            first_validation_seconds=times[0],
            validation_seconds=times[-1],
        )
        return costs, max(found.first_seconds - costs.step_seconds, 0.0)

    def _run(self, micro_rows: int) -> Run:
        config = self._context.config
        config = replace(config, batch=replace(config.batch, micro_rows=micro_rows))
        return Run(replace(self._context, config=config))

    def _stages(self, run: Run) -> Iterator[tuple[StageContext, int]]:
        """Each stage as the run enters it, and its steps."""
        optimizer: torch.optim.Optimizer | None = None
        for number, weight in enumerate(self._spec.steps):
            optimizer = run.enter_stage(number, optimizer)
            stage = run.stage_context(self._wrapped, optimizer, StopSignal())
            stage.steps, stage.schedule = _FOREVER, _UNINTERRUPTED
            run.module.train()
            yield stage, weight

    def _times(
        self, run: Run, stage: StageContext, opened: tuple[OpenStream, ...], seconds: float
    ) -> _StepTimes:
        """Times of whole steps, timed or, where they have many micro-batches, calculated."""
        shape = run.config.batch
        at_once = shape.micro_batch_rows * self._accelerator.num_processes
        number = shape.rows // at_once
        if number <= _WHOLE_STEP:
            return self._timed(run, stage, opened, shape.rows, seconds)
        few, more = _FEW, _SOME
        if compared_over_step(run.module, stage.objectives):
            few, more = few + 1, more + 1  # only several micro-batches have a second pass
        one = self._timed(run, stage, opened, few * at_once, seconds / 4)
        some = self._timed(run, stage, opened, more * at_once, seconds)
        micro_batch = (min(some.seconds) - min(one.seconds)) / (more - few)
        if micro_batch <= 0:  # noise
            micro_batch = min(some.seconds) / more
        micro_batch *= mean(some.seconds) / min(some.seconds)
        return _StepTimes(
            first_seconds=some.first_seconds + (number - more) * micro_batch,
            seconds=[taken + (number - more) * micro_batch for taken in some.seconds],
            tokens=some.tokens * number / more,
        )

    def _timed(
        self,
        run: Run,
        stage: StageContext,
        opened: tuple[OpenStream, ...],
        rows: int,
        seconds: float,
    ) -> _StepTimes:
        """Take steps of so many rows for about so many seconds."""
        config = replace(run.config, batch=replace(run.config.batch, rows=rows))
        context = replace(run.context, config=config)
        loader = make_loader(context, opened, stage=stage.stage, seed=config.seed)
        steps = training_steps(stage, loader.steps(Cursor()), self._accelerator)
        metrics = MetricsFile(self._spec.scratch / f"trial-{os.getpid()}.jsonl")
        times: list[float] = []
        tokens, number = 0, _WARMUP_STEPS
        try:
            began = time.perf_counter()
            while len(times) < number:
                result = next(steps)
                metrics.write(step_record(result, result.step, run.state))
                tokens += result.num_tokens
                times.append(time.perf_counter() - began)
                began = time.perf_counter()
                if len(times) == _WARMUP_STEPS:
                    number += self._agreed(math.ceil(seconds / max(times[-1], 1e-6)))
        finally:
            steps.close()  # type: ignore[attr-defined]
            metrics.close()
        return _StepTimes(
            first_seconds=times[0], seconds=times[_WARMUP_STEPS:], tokens=tokens / number
        )

    def _agreed(self, number: int) -> int:
        """A number of steps within limits, that of the first process for all."""
        limited = [min(max(number, _MIN_STEPS), _MAX_STEPS)]
        broadcast_object_list(limited)
        return limited[0]

    def _checkpoint(self, run: Run, optimizer: torch.optim.Optimizer) -> tuple[float, float, int]:
        """Seconds that training waits for a checkpoint, then until it is on disk; its bytes."""
        # trial processes that train together write one checkpoint, as the run's do
        alone = self._accelerator.num_processes == 1
        folder = (self._spec.scratch if alone else self._spec.scratch.parent) / "checkpoints"
        saver = CheckpointSaver(folder, run.config.checkpoint, group=run.saver.group)
        pause = _clocked(lambda: saver.save(run.state, run.module, optimizer))
        rest = _clocked(saver.wait)
        size = _bytes_in(folder)
        wait_for_all(self._accelerator)
        shutil.rmtree(folder, ignore_errors=True)
        return pause, rest, size

    def _export(self, run: Run) -> tuple[float, int]:
        """Seconds and bytes of the exported folders."""
        before = _bytes_in(self._spec.scratch)
        seconds = _clocked(lambda: run.context.exporter.export_final(run.state))
        return seconds, _bytes_in(self._spec.scratch) - before

    def forget(self) -> None:
        """Free what the last size has left behind, compiled kernels included."""
        self._context.module.zero_grad(set_to_none=True)
        if self._compiles:
            torch.compiler.reset()
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


def _on_trial(config: PretrainConfig, steps: tuple[int, ...]) -> PretrainConfig:
    """The recipe without what a trial leaves out: learning, trackers, counting steps."""
    still = replace(config.optimizer, learning_rate=0.0)
    stages = tuple(
        replace(
            stage,
            steps=number,
            epochs=None,
            batch_warmup=None,
            optimizer=stage.optimizer and replace(stage.optimizer, learning_rate=0.0),
        )
        for stage, number in zip(config.stages, steps, strict=True)
    )
    return replace(
        config,
        stages=stages,
        optimizer=still,
        batch=replace(config.batch, micro_rows=config.batch.rows),
        logging=replace(config.logging, trackers=()),
    )


def _clocked(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
