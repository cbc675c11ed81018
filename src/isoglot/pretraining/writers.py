"""Metric writers: the console, metrics.jsonl and accelerate's trackers (TensorBoard, W&B, ...).

Each takes flat records: one for a step (`step_record`), one for a validation. On a terminal the
console shows a progress bar; in a log file it prints a line every 15 seconds. A resumed run cuts
metrics.jsonl at its checkpoint, so the file equals that of a run without interruption.
"""

from __future__ import annotations

import json
import time
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from isoglot.atomic import write_text

if TYPE_CHECKING:
    from pathlib import Path

    from accelerate import Accelerator
    from rich.console import Console

    from isoglot.pretraining.checkpoint import TrainState
    from isoglot.pretraining.train_step import StepResult

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

    def __init__(self, label: str, total: int, done: int, console: Console) -> None:
        self._console, self._label, self._total = console, label, total
        self._rates: deque[tuple[float, float]] = deque(maxlen=_STEPS_AVERAGED)
        self._last_line = time.monotonic()
        self._progress: Progress | None = None
        if console.is_terminal:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[status]}"),
                console=console,
            )
            self._task = self._progress.add_task(label, total=total, completed=done, status="")
            self._progress.start()

    def write(self, record: Record) -> None:
        """Show a record of a step, or of a validation."""
        step = int(record["step"])
        if "seconds" not in record:
            self._console.print(f"{self._label} step {step}  {_summary(record)}", highlight=False)
            return
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
            left = (self._total - step) * seconds / len(self._rates)
            remaining = timedelta(seconds=round(left))
            self._console.print(
                f"{self._label} step {step}/{self._total}  {status}  {remaining} left",
                highlight=False,
            )

    def close(self) -> None:
        """Stop the progress bar."""
        if self._progress is not None:
            self._progress.stop()


def _summary(record: Record) -> str:
    """The mean perplexities of a validation, objective by objective."""
    means = {k: v for k, v in record.items() if k.endswith("/mean/perplexity")}
    return "held out: " + ", ".join(
        f"{name.split('/')[1]} perplexity {float(value):.2f}" for name, value in means.items()
    )


class MetricsFile:
    """Appends records to a file of JSON lines."""

    def __init__(self, file: Path, *, resume_at: int = 0) -> None:
        kept = []
        if file.exists() and resume_at:
            for line in file.read_text(encoding="utf-8").splitlines():
                try:
                    record = json.loads(line)
                except json.JSONDecodeError:
                    break  # an incomplete line: the run was killed while writing it
                if record["step"] <= resume_at:
                    kept.append(line)
        write_text(file, "".join(f"{line}\n" for line in kept))
        self._stream = file.open("a", encoding="utf-8")

    def write(self, record: Record) -> None:
        """Append one record; it survives the process from here on."""
        self._stream.write(json.dumps(record) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class TrackerWriter:
    """Sends the numbers of each record to accelerate's trackers."""

    def __init__(self, accelerator: Accelerator, name: str) -> None:
        self._accelerator = accelerator
        accelerator.init_trackers(name)

    def write(self, record: Record) -> None:
        """Log the numbers of a record under their names."""
        numbers = {k: v for k, v in record.items() if k != "step" and not isinstance(v, str)}
        self._accelerator.log(numbers, step=int(record["step"]))

    def close(self) -> None:
        """Flush and close the trackers."""
        self._accelerator.end_training()


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
            self._console.print(f"{stage}: {done / total:.0%}", highlight=False)
        else:
            return
        self._stage, self._last_line = stage, time.monotonic()
