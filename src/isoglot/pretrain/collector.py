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


@contextmanager
def little_to_collect() -> Iterator[Callable[[], None]]:
    """Set aside what is there, for a while; gives what to call when there is more of it.

    When it is over, all is as usual again, for objects too that others have set aside.
    """
    gc.unfreeze()
    gc.collect()  # what is left of an earlier run would hold its memory, or the GPU's
    gc.freeze()
    try:
        yield gc.freeze
    finally:
        gc.unfreeze()
