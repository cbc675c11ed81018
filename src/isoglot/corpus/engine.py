"""Where the work of preparing runs: here, or in a pool of processes on this machine.

The one seam a cluster would replace. Items share nothing and results keep the order of the items,
so the number of workers can never change what is written.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_shards(
    function: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[Result]:
    """`function` of every item, in order. With more than one worker, both must pickle."""
    if workers <= 1 or len(items) <= 1:
        yield from map(function, items)
        return
    # spawn: a forked child would inherit the locks of this process's tokenizer threads
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(items)), mp_context=context) as pool:
        yield from pool.map(function, items)
