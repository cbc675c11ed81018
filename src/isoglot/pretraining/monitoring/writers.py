"""Metric writers: the console, metrics.jsonl and accelerate's trackers (`trackers.py`).

Each takes flat records: one for a step (`step_record`), one for a validation. On a terminal the
console shows a progress bar; in a log file it prints a line every 15 seconds. A resumed run cuts
metrics.jsonl at its checkpoint, so the file equals that of a run without interruption.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

from isoglot import json_text
from isoglot.atomic import write_errors, write_text
from isoglot.errors import WriteError
from isoglot.objectives.contrast.pooling import ContrastObjective
from isoglot.pretraining.estimates.forecast import SpeedWriter
from isoglot.pretraining.monitoring.heldout_scores import HeldoutLine
from isoglot.pretraining.monitoring.trackers import TrackerWriter
from isoglot.pretraining.monitoring.worsening import RisingLossWriter, WorseningWriter
from isoglot.progress import duration, progress_bars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress

    from isoglot.pretraining.build import RunContext
    from isoglot.pretraining.checkpoints.checkpoint_state import TrainState
    from isoglot.pretraining.train_step import StepResult

_log = logging.getLogger(__name__)
Record = dict[str, float | int | str]


def step_record(step: StepResult, total: int, state: TrainState) -> Record:
    """Losses, metrics, counts and speed of a step; `total` counts steps over all stages."""
    record: Record = {"step": total, "stage": state.stage}
    record |= {f"{name}/loss": loss for name, loss in step.losses.items()}
    record |= step.metrics
    record |= {f"{name}/count": count for name, count in step.counts.items()}
    record |= {
        "learning_rate": step.learning_rate,
        "gradient_norm": step.gradient_norm,
        "tokens": step.num_tokens,
        "total_tokens": state.tokens,
        "seconds": step.seconds,
        "tokens_per_second": step.num_tokens / step.seconds,
    }
    if step.skipped:
        record["skipped"] = 1
    return record


class Writer(Protocol):
    """Takes records: flat dictionaries with the step they belong to."""

    def write(self, record: Record) -> None:
        """Take one record."""
        ...

    def close(self) -> None:
        """Called when the run ends, also after an error."""
        ...


class Writers:
    """Several writers that take the same records."""

    def __init__(self, *writers: Writer) -> None:
        self._writers = list(writers)
        self.show: Callable[[str, str], None] | None = None
        """Takes the name of a text and the text; None where nobody reads texts."""

    def add(self, writer: Writer) -> None:
        """Add a writer."""
        self._writers.append(writer)

    def write(self, record: Record) -> None:
        """Pass a record to every writer."""
        for writer in self._writers:
            writer.write(record)

    def close(self) -> None:
        """Close every writer."""
        for writer in self._writers:
            writer.close()


_LINE_SECONDS = 15.0
"""Seconds between two lines of progress in a log file."""
_STEPS_AVERAGED = 50
"""Steps that the printed speed is averaged over."""


class ConsoleWriter:
    """Shows losses, speed and the time left."""

    def __init__(
        self,
        label: str,
        total: int,
        done: int,
        console: Console,
        earlier: Iterable[Record] = (),
        *,
        time_left: bool = True,
    ) -> None:
        """`earlier` are the records of a run that is resumed after step `done`.

        Without `time_left` the run is a part of something that shows how long the whole takes.
        """
        self._console, self._label, self._total = console, label, total
        self._shows_time_left = time_left
        self._heldout_line = HeldoutLine(one for one in earlier if "seconds" not in one)
        self._rates: deque[tuple[float, float]] = deque(maxlen=_STEPS_AVERAGED)
        self._first, self._only_first = done + 1, False
        """The first step, and is its rate the only one? It may compile, unlike the others."""
        self._last_line = time.monotonic()
        self._progress: Progress | None = None
        if console.is_terminal:
            self._progress = progress_bars(console, counts=True, time_left=time_left)
            self._task = self._progress.add_task(label, total=total, completed=done, status="")
            self._progress.start()

    def write(self, record: Record) -> None:
        """Show a record of a step, or of a validation."""
        step = int(record["step"])
        if "seconds" not in record:
            line = f"{self._label} step {step}  {self._heldout_line(record)}"
            self._console.print(line, highlight=False, soft_wrap=True)
            return
        if self._only_first:
            self._rates.clear()
        self._only_first = step == self._first
        self._rates.append((float(record["tokens"]), float(record["seconds"])))
        tokens, seconds = (sum(values) for values in zip(*self._rates, strict=True))
        losses = "  ".join(
            f"{name.removesuffix('/loss')} {float(value):.3f}"
            for name, value in record.items()
            if name.endswith("/loss")
        )
        status = f"{losses}  {tokens / seconds:,.0f} tokens/s"
        if self._progress is not None:
            self._progress.update(self._task, completed=step, status=status)
        elif time.monotonic() - self._last_line > _LINE_SECONDS or step == self._total:
            self._last_line = time.monotonic()
            told, sure = "", not self._only_first or step == self._total
            if self._shows_time_left and sure:
                told = f"  {duration((self._total - step) * seconds / len(self._rates))} left"
            self._console.print(
                f"{self._label} step {step}/{self._total}  {status}{told}",
                highlight=False,
                soft_wrap=True,
            )

    def close(self) -> None:
        """Stop the progress bar."""
        if self._progress is not None:
            self._progress.stop()


def read_records(file: Path, *, until: int) -> list[Record]:
    """The records of a run's metrics.jsonl up to a step; none of a run that begins."""
    if not until or not file.exists():
        return []
    kept = (line for line, step in _read_lines(file) if step is not None and step <= until)
    return [json_text.parse(line) for line in kept]


def _read_lines(file: Path) -> Iterator[tuple[str, int | None]]:
    """The lines of a metrics.jsonl and the step of each; None: it is no record."""
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json_text.parse(line)
        except ValueError:
            record = None
        step = record.get("step") if isinstance(record, dict) else None
        yield line, step if isinstance(step, int) and "\ufffd" not in line else None


class MetricsFile:
    """Appends records to a file of JSON lines."""

    def __init__(self, file: Path, *, resume_at: int = 0) -> None:
        kept = []
        if file.exists() and resume_at:
            records = list(_read_lines(file))
            kept = [line for line, step in records if step is not None and step <= resume_at]
            # the last line may be incomplete: the run was killed while writing it
            lost = sum(step is None for _, step in records[:-1])
            if lost:
                _log.warning("%s: %d damaged lines are left out.", file, lost)
        self._file = file
        write_text(file, "".join(f"{line}\n" for line in kept))
        self._stream = file.open("ab", buffering=0)

    def write(self, record: Record) -> None:
        """Append one record; it survives the process from here on.

        Raises:
            WriteError: the disk is full; the file ends with the record before.
        """
        line, end = json.dumps(record).encode() + b"\n", self._stream.tell()
        try:
            with write_errors(self._file):
                while line:
                    line = line[self._stream.write(line) :]
        except WriteError:
            self._stream.truncate(end)
            raise

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def open_writers(context: RunContext, *, done: int) -> Writers:
    """The writers of a run that has taken so many steps; none on other processes than the main."""
    if not context.accelerator.is_main_process:
        return Writers()
    file = context.folder / "metrics.jsonl"
    earlier = read_records(file, until=done)
    warn = partial(context.warn, kind="warning")
    objectives = context.objectives.items()
    contrast = [name for name, one in objectives if isinstance(one, ContrastObjective)]
    writers = Writers(
        MetricsFile(file, resume_at=done),
        ConsoleWriter(
            context.name,
            sum(context.num_steps),
            done,
            context.console,
            earlier,
            time_left=not context.part_of_plan,
        ),
        RisingLossWriter(
            context.warn, contrast if context.config.logging.validate_every_steps else ()
        ),
        WorseningWriter(warn, contrast, earlier),
        SpeedWriter(context.console, context.num_steps),
    )
    if context.config.logging.trackers:
        trackers = TrackerWriter(
            context.accelerator,
            context.name,
            context.config,
            recipe_text=context.recipe_text,
            step=done,
        )
        writers.add(trackers)
        writers.show = trackers.write_text
    return writers


_PREPARE_LINE_SECONDS = 10.0


class PrepareProgress:
    """Says what is being made, and how far it is where that takes long."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stage = ""
        self._last_line = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """`done` of `total` of a stage are done."""
        if stage != self._stage:
            self._console.print(f"{stage} (once for this corpus) ...", highlight=False)
        elif time.monotonic() - self._last_line > _PREPARE_LINE_SECONDS and total:
            self._console.print(f"{stage}: {100 * done / total:.0f} %", highlight=False)
        else:
            return
        self._stage, self._last_line = stage, time.monotonic()
