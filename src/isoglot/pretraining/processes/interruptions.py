"""What ends a run early: signals, killed loader workers, and processes that are lost.

A signal requests a checkpoint after the current step. A scheduler sends it to every process of a
run, and torchrun passes on the one that it gets itself, so each process gets it twice or more
within milliseconds: repetitions within `GRACE_SECONDS` count once.
"""

from __future__ import annotations

import re
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isoglot.pretraining.processes.liveness import (
    STOPPED_EXIT_CODE,
    InterruptedRunError,
    lost_process,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""Signals that save a checkpoint and end the run."""
GRACE_SECONDS = 5.0
"""Signals that follow the first within this time are repetitions of it."""
_CHILD_SECONDS = 2.0
"""Most time until the signal of a process that has ended arrives."""


@contextmanager
def exit_at_signals() -> Iterator[None]:
    """In the block, SIGTERM and SIGUSR1 outside of training end this process as a stop (75).

    There is nothing to save: no step was taken yet, or the last one has a checkpoint. Locks are
    released. Ctrl-C interrupts, as everywhere. A launcher also sends SIGTERM when another process
    has failed: that one's end is told by `liveness.py`, and is no stop. After the block such a
    signal is ignored, so that the sentence about the other process is printed before this one ends.
    """

    def end(_: int, __: FrameType | None) -> None:
        loss = lost_process(wait_seconds=_LOSS_SECONDS)
        if loss is None or loss.stopped:
            raise SystemExit(STOPPED_EXIT_CODE)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGUSR1)}
    try:
        yield
    except InterruptedRunError as error:
        if error.exit_code is not None:  # the command ends with it at once
            before = dict.fromkeys(before, signal.SIG_IGN)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def killed_by_signals() -> Iterator[None]:
    """In the block, SIGTERM and SIGUSR1 end this process at once, as the system does it.

    While processes find each other, they wait in C++, where no handler of Python is called.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGUSR1)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class StopSignal:
    """A context in which a signal requests a stop after the current step.

    Another signal after the grace period interrupts at once.
    """

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        self._handlers: dict[int, object] = {}
        self._received: signal.Signals | None = None
        self._since = 0.0
        self._said = False

    @property
    def requested(self) -> bool:
        """Has this process received a signal?"""
        return self._received is not None

    @property
    def name(self) -> str:
        """The signal that this process has received, or a sentence's beginning for another's."""
        return self._received.name if self._received else "A signal to another process"

    def announce(self) -> None:
        """Says once that the run stops, also where only another process has got the signal.

        The handler itself must not print: it may have interrupted somebody who was printing.
        """
        if not self._said:
            self._said = True
            self._say(
                f"{self.name}: a checkpoint is saved after this step, then the run ends. "
                f"Another signal after {GRACE_SECONDS:g} s ends it at once."
            )

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is not threading.main_thread():
            return self  # Python handles signals in the main thread only
        for number in SIGNALS:
            self._handlers[number] = signal.signal(number, self._request)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if self._received is not None and self._handlers and self._repeats():
            self._ignore_repetitions()

    def _request(self, number: int, _: FrameType | None) -> None:
        if self._received is None:
            self._received, self._since = signal.Signals(number), time.monotonic()
        elif not self._repeats():
            raise KeyboardInterrupt

    def _repeats(self) -> bool:
        return time.monotonic() - self._since < GRACE_SECONDS

    def _ignore_repetitions(self) -> None:
        """After the block, too, repetitions of the signal that ended it do nothing."""

        def handle(number: int, frame: FrameType | None) -> None:
            if self._repeats():
                return
            before = self._handlers[number]
            signal.signal(number, before)  # type: ignore[arg-type]
            if callable(before):
                before(number, frame)
            elif before != signal.SIG_IGN:
                signal.raise_signal(number)

        for number in SIGNALS:
            signal.signal(number, handle)


_WORKER = re.compile(r"DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\) (.*)", re.DOTALL)
_LOSS_SECONDS = 2.0
"""Most time until the first process has told who has ended."""
_REASON = 200
"""Characters of an error that a sentence shows."""
_LOST = re.compile(
    r"closed by peer|reset by peer|Broken pipe|Timed out|timeout|timed out|remote process exited"
)


@contextmanager
def explained_interruptions(num_processes: int) -> Iterator[None]:
    """Turns the errors of torch for lost workers and processes into sentences."""
    try:
        yield
    except (ConnectionError, EOFError) as error:
        # a worker's batch was being read; torch's handler of SIGCHLD says which worker it was
        worker = None
        try:
            time.sleep(_CHILD_SECONDS)
        except RuntimeError as said:
            worker = _WORKER.search(str(said))
        raise _lost_worker(worker) from error
    except RuntimeError as error:
        if worker := _WORKER.search(str(error)):
            raise _lost_worker(worker) from error
        if num_processes == 1:
            raise
        looks_lost = _LOST.search(str(error)) is not None
        if loss := lost_process(wait_seconds=_LOSS_SECONDS if looks_lost else 0.0):
            raise loss.error() from error
        if looks_lost:
            raise InterruptedRunError(_unanswered(error), exit_code=1) from error
        raise


def _unanswered(error: RuntimeError) -> str:
    """The sentence for a process that has not answered, and of which no end is known."""
    reason = _first_line(str(error))[:_REASON]
    return (
        f"Another process of this run has not answered or has ended ({reason}). If it was busy "
        "with something longer, raise distributed.timeout_minutes. The last checkpoint is intact: "
        "add --resume."
    )


def _lost_worker(worker: re.Match[str] | None) -> InterruptedRunError:
    process = f" (process {worker[1]})" if worker else ""
    reason = f" ({_first_line(worker[2])})" if worker else ""
    return InterruptedRunError(
        f"A loader worker{process} has ended{reason}, mostly because memory ran out: lower "
        "loader.num_workers or loader.prefetch_factor. The last checkpoint is intact: add --resume."
    )


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else "killed"
