"""Waiting for work of another process, however long it takes.

A collective operation of torch ends with an error once `distributed.timeout_minutes` is over. That
is right where all processes do the same, and one of them hangs. It is wrong while one process does
something for all: counts, transplants, writes a checkpoint, exports. For such work the others wait
here: they poll a counter in the store of the process group, which has no time-out. A process that
ends meanwhile ends the waiting (`liveness.py`).
"""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isoglot.pretraining.processes.liveness import group_store, raise_if_lost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accelerate import Accelerator

_FIRST_SECONDS, _LAST_SECONDS = 0.001, 0.25
"""Time between two looks at the counter, at first and after a while."""
_meetings = itertools.count()


def wait_for_all(accelerator: Accelerator) -> None:
    """Go on when all processes are here; the time that one of them may take is not limited.

    Raises:
        InterruptedRunError: one of them has ended.
    """
    if accelerator.num_processes == 1:
        return
    store, number = group_store(), next(_meetings)
    key, pause = f"isoglot/meeting/{number}", _FIRST_SECONDS
    here = store.add(key, 1)
    while here < accelerator.num_processes:
        time.sleep(pause)
        pause = min(1.5 * pause, _LAST_SECONDS)
        raise_if_lost()
        here = store.add(key, 0)
    if accelerator.is_main_process and number > 1:
        store.delete_key(f"isoglot/meeting/{number - 2}")  # everybody has left it


@contextmanager
def main_process_first(accelerator: Accelerator) -> Iterator[None]:
    """The block runs on the main process, and when that is done on the others."""
    if not accelerator.is_main_process:
        wait_for_all(accelerator)
    yield
    if accelerator.is_main_process:
        wait_for_all(accelerator)
