"""Before a stage's first step: objectives that begin with something seen get to see it.

A queue that begins filled (InfoXLM) gets the keys of batches of the stage's own streams, in an
order of their own: what is trained on, and the cursor, are the same as without them. Nothing is
trained. What was filled is in every checkpoint of the stage, so a resumed run fills nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from isoglot.batching.permutation import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from accelerate import Accelerator

    from isoglot.pretrain.trainee import Trainee
    from isoglot.types import Batch

_SECONDS_BETWEEN_LINES = 15.0


def wanting(trainee: Trainee, names: Iterable[str]) -> dict[str, int]:
    """Which of the objectives want to see something before their first step, and how much."""
    found = {name: trainee.objective(name).wanting() for name in names}
    return {name: number for name, number in found.items() if number}


@torch.no_grad()
def fill(
    trainee: Trainee,
    names: Iterable[str],
    steps: Iterator[list[Batch]],
    accelerator: Accelerator,
    *,
    seed: int,
    stopping: Callable[[], bool],
    say: Callable[[str], None],
) -> None:
    """Go through steps of batches until no objective wants more, or a process is asked to stop.

    Whole steps, so that what is seen is the same on any number of processes.

    Args:
        trainee: what will be trained.
        names: the objectives that the stage trains.
        steps: this process's micro-batches, step by step, without end.
        accelerator: the processes and their devices.
        seed: of the keys' dropout.
        stopping: was any process asked to stop? Called by all of them together.
        say: told how far it is.
    """
    left, number, last_line = wanting(trainee, names), 0, float("-inf")
    while left and not stopping():
        if time.monotonic() - last_line > _SECONDS_BETWEEN_LINES:
            last_line = time.monotonic()
            wants = ", ".join(f"{name} {more:,}" for name, more in left.items())
            say(f"filling queues before the first step, keys to go: {wants}")
        torch.manual_seed(key_of(seed, "fill", number, accelerator.process_index) >> 1)
        for batch in next(steps):
            with accelerator.autocast():
                trainee(batch.to(accelerator.device), filling=left)
        left, number = wanting(trainee, left), number + 1
