"""What a run will take: passes over the data, time, memory and disk, from measured steps.

    recipe, corpus --trial process--> RunCosts --steps of each stage--> RunEstimate

`isoglot pretrain --plan` prints it, and `isoglot adapt` asks for it before it trains. The run
itself takes its numbers from the same measurements (`planning.py`).
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from isoglot.batching.loader import open_streams
from isoglot.batching.mixture import Mixture
from isoglot.batching.padded import build_planner
from isoglot.pretraining.build import count_steps, prepare_objectives, resolve_init
from isoglot.pretraining.config import PretrainConfig, objectives_to_fit
from isoglot.pretraining.estimates.costs import (
    RunCosts,
    disk_of_run,
    occasions,
    seconds_of_run,
    steps_for_hours,
)
from isoglot.pretraining.estimates.forecast import StreamPasses, count_passes, many_passes_note
from isoglot.pretraining.estimates.measuring import RunMeasurer, time_budget
from isoglot.pretraining.estimates.planning import warmup_notes, with_numbers
from isoglot.pretraining.memory import free_memory, gib
from isoglot.pretraining.requirements import check_corpus
from isoglot.pretraining.runtime import make_accelerator
from isoglot.pretraining.stage_data import with_corpus_defaults
from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus import Corpus
    from isoglot.objectives.base import Objective
    from isoglot.pretraining.estimates.measuring import TimeBudget
    from isoglot.pretraining.estimates.micro_rows import MicroRows


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """Time, memory and disk of a run."""

    config: PretrainConfig
    """The recipe with `batch.micro_rows` as a number, and with the steps that fill the hours."""
    micro_rows: int
    reason: str
    """Why so many rows at a time: the recipe's number, or what was tried."""
    steps: tuple[int, ...]
    """Steps of each stage."""
    passes: tuple[StreamPasses, ...]
    costs: RunCosts
    seconds: float
    """The whole run: building the model, training, validation, checkpoints, export."""
    disk_bytes: int
    """Checkpoints that are kept, and exported models."""
    free_disk_bytes: int
    memory_bytes: int
    """Memory that is free: of a GPU, or of the machine."""

    @property
    def tokens(self) -> int:
        """Tokens of all stages, without padding."""
        pairs = zip(self.steps, self.costs.stages, strict=True)
        return round(sum(steps * stage.step_tokens for steps, stage in pairs))

    @property
    def training_seconds(self) -> float:
        """The time of all steps; validation and checkpoints apart."""
        pairs = zip(self.steps, self.costs.stages, strict=True)
        return sum(steps * stage.step_seconds for steps, stage in pairs)

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second while training."""
        return self.tokens / self.training_seconds

    def rows(self) -> list[tuple[str, str]]:
        """What the estimate says, line by line: (what, how much)."""
        costs, often = self.costs, occasions(self.config, self.steps)
        found = [("rows at a time", f"{self.micro_rows} ({self.reason})")]
        for number, (steps, stage) in enumerate(zip(self.steps, costs.stages, strict=True)):
            each = f"{steps:,} steps of {stage.step_tokens:,.0f} tokens, {stage.step_seconds:.3g} s"
            found.append((f"stage {number + 1}", f"{each}: {duration(steps * stage.step_seconds)}"))
            own = (one for one in self.passes if one.stage == number)
            found += (
                (f"  {one.stream}", f"{one.examples:,} examples, {one.read()}") for one in own
            )
        start = (
            f"{_short(costs.build_seconds)}, the first step {_short(costs.compile_seconds)} more"
        )
        validation = _short(costs.stages[-1].validation_seconds)
        saving, kept = _short(costs.checkpoint_seconds), self.config.checkpoint.keep
        saved = f"{often.checkpoints} of {gib(costs.checkpoint_bytes)}, {saving} each"
        exports, exporting = 1 + often.intermediate_exports, _short(costs.export_seconds)
        return [
            *found,
            ("tokens", f"{self.tokens:,}, {self.tokens_per_second:,.0f} a second"),
            ("start", start),
            ("validations", f"{sum(often.validations)}, {validation} each"),
            ("checkpoints", f"{saved}; the newest {min(often.checkpoints, kept)} are kept"),
            ("exports", f"{exports} of {gib(costs.export_bytes)}, {exporting} each"),
            ("memory", f"{gib(costs.peak_bytes)} of {gib(self.memory_bytes)} that are free"),
            ("disk", f"{gib(self.disk_bytes)} of {gib(self.free_disk_bytes)} that are free"),
            ("time", duration(self.seconds)),
        ]

    def table(self) -> Table:
        """The estimate as a table for a terminal."""
        table = Table("", "estimate", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for what, how_much in self.rows():
            table.add_row(what, Text(how_much))
        return table

    def notes(self) -> list[str]:
        """Sentences about what looks wrong: much warm-up, very many passes, too little disk."""
        found = warmup_notes(self.config, self.steps)
        for stage in range(len(self.steps)):
            note = many_passes_note([one for one in self.passes if one.stage == stage])
            found += [note] if note else []
        if self.disk_bytes > self.free_disk_bytes:
            found.append(
                f"the run needs {gib(self.disk_bytes)} of disk and {gib(self.free_disk_bytes)} are "
                "free: free some, lower checkpoint.keep, or choose another folder with --out."
            )
        return found


def estimate_run(
    config: PretrainConfig,
    corpus: Corpus,
    console: Console | None = None,
    *,
    hours: float | None = None,
    folder: Path | None = None,
    trial_seconds: float | None = None,
    search_seconds: float | None = None,
) -> RunEstimate:
    """Measure a few steps of a recipe on a corpus, in a process of its own.

    The estimate's `config` can be trained as it is: `batch.micro_rows` is a number that fits the
    memory, and with `hours` the stages have the steps that fill them.

    Args:
        config: the recipe, `batch.micro_rows: auto` included.
        corpus: a prepared corpus; a sample has the same speed, and its own passes.
        console: shows what is tried; none: nothing.
        hours: time for the whole run from now on; none: the recipe's steps.
        folder: where the run will be written, so that its disk is measured; none: a temporary one.
        trial_seconds: time for timing steps; none: ten seconds, or a share of the hours.
        search_seconds: time for trying numbers of rows; none: two minutes, or such a share.

    Raises:
        DoesNotFitError: no number of rows fits the memory.
        IsoglotError: the hours are too few.
    """
    budget = time_budget(hours)
    with _measurer(
        config, corpus, console, folder, budget=budget, search_seconds=search_seconds
    ) as measurer:
        rows = measurer.micro_rows()
        costs = measurer.costs(rows.number, trial_seconds)
        place = measurer.scratch.parent
    objectives, device = dict(measurer.objectives), measurer.accelerator.device
    resolved = with_numbers(with_corpus_defaults(config, corpus), rows.number, None)
    steps = tuple(count_steps(resolved, corpus, objectives))
    if budget is not None:
        wanted = steps
        steps = measurer.on_all(lambda: steps_for_hours(resolved, costs, wanted, budget.left()))[0]
    return RunEstimate(
        config=with_numbers(config, rows.number, steps if budget is not None else None),
        micro_rows=rows.number,
        reason=rows.reason,
        steps=steps,
        passes=_passes(resolved, corpus, objectives, steps),
        costs=costs,
        seconds=seconds_of_run(resolved, costs, steps),
        disk_bytes=disk_of_run(resolved, costs, steps),
        free_disk_bytes=shutil.disk_usage(place).free,
        memory_bytes=free_memory(device),
    )


def find_micro_rows(
    config: PretrainConfig,
    corpus: Corpus,
    console: Console | None = None,
    *,
    folder: Path | None = None,
    sharing: int = 1,
) -> MicroRows:
    """The rows at a time that a recipe has, or with `auto` the fastest number that fits.

    `sharing` runs will share the memory of the device. Else as `estimate_run`.
    """
    with _measurer(config, corpus, console, folder, sharing=sharing) as measurer:
        return measurer.micro_rows()


@contextmanager
def _measurer(
    config: PretrainConfig,
    corpus: Corpus,
    console: Console | None,
    folder: Path | None,
    *,
    budget: TimeBudget | None = None,
    sharing: int = 1,
    search_seconds: float | None = None,
) -> Iterator[RunMeasurer]:
    """What measures a recipe that is not being run, in a scratch folder beside the run's."""
    console = console or Console(quiet=True)
    check_corpus(config, corpus)
    place = _existing(folder) if folder is not None else Path(tempfile.gettempdir())
    # no tracker: nothing is recorded
    quiet = replace(config, logging=replace(config.logging, trackers=()))
    accelerator = make_accelerator(quiet, place)
    opened = with_corpus_defaults(config, corpus)
    objectives = prepare_objectives(opened, corpus, console, accelerator)
    whole = replace(opened.batch, micro_rows=opened.batch.rows)
    steps = count_steps(replace(opened, batch=whole), corpus, objectives)
    scratch = Path(tempfile.mkdtemp(prefix=".isoglot-trial-", dir=place))
    try:
        model = resolve_init(opened, corpus, scratch, console, transplant_now=True)
        with RunMeasurer(
            config=replace(opened, model=model),
            corpus=corpus,
            scratch=scratch,
            accelerator=accelerator,
            objectives=objectives,
            console=console,
            steps=tuple(steps),
            budget=budget,
            sharing=sharing,
            search_seconds=search_seconds,
        ) as measurer:
            yield measurer
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _passes(
    config: PretrainConfig,
    corpus: Corpus,
    objectives: dict[str, Objective],
    steps: tuple[int, ...],
) -> tuple[StreamPasses, ...]:
    """How often the stages of these steps read their streams."""
    known, found = {**objectives_to_fit(config), **objectives}, list[StreamPasses]()
    for number, stage in enumerate(config.stages):
        opened = open_streams(corpus, stage.streams, known, row_length=config.batch.row_length)
        mixture = Mixture(opened, seed=config.seed, stage=number)
        planner = build_planner(
            mixture, config.batch, target_capacity=None, warmup=stage.batch_warmup
        )
        found += count_passes(planner, list(stage.streams), stage=number, steps=steps[number])
    return tuple(found)


def _existing(folder: Path) -> Path:
    """A folder, or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def _short(seconds: float) -> str:
    """A time that may be less than a second."""
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)
