"""Stopping at a signal: SIGTERM and SIGINT ask for a checkpoint after the running step.

A second signal stops at once, for those who cannot wait.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType


class StopAtSignal:
    """A context in which the two signals are noted instead of ending the process."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.requested = False
        self._say = say
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopAtSignal:
        if threading.current_thread() is not threading.main_thread():
            return self  # Python takes signals in the main thread only
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self._say(f"{signal.Signals(number).name}: saving a checkpoint after this step, then done.")
