"""Python's garbage collector, kept from looking through everything while a model trains.

A full collection walks over all objects that there are: half a million once torch, transformers
and a compiled model are loaded, a third of a second in the middle of a step, and every few steps
where batches make many small objects. What is there when training begins stays until it ends, and
so does what the first step compiles; both are set aside, and collections see what came after.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch


@contextmanager
def little_to_collect(device: torch.device) -> Iterator[Callable[[], None]]:
    """Set aside what is there, for a while; gives what to call when there is more of it."""

    def set_aside() -> None:
        if device.type != "cpu":
            gc.collect()  # nothing that is left of an earlier run may hold a GPU's memory
        gc.freeze()

    set_aside()
    try:
        yield set_aside
    finally:
        gc.unfreeze()
