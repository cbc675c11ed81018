"""Places of equal numbers in an array, without a pass over the array for each number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from isoglot.types import LongArray

_RADIX = 2**16
"""numpy sorts numbers of 16 bits in linear time."""


def ascending_order(numbers: npt.NDArray[Any]) -> LongArray:
    """The stable order of non-negative integers, in linear time if they are small."""
    if len(numbers) and numbers.max() < _RADIX:
        numbers = numbers.astype(np.uint16)
    return np.argsort(numbers, kind="stable")


def group_places(numbers: npt.NDArray[Any]) -> Iterator[tuple[int, LongArray]]:
    """Each different number, ascending, and its places, ascending."""
    if not len(numbers):
        return
    order = ascending_order(numbers)
    found, first = np.unique(numbers[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, first[1:]), strict=True)
