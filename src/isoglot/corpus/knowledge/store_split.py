"""Which pages and triples are held out: decided by a hash of what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from isoglot.types import BoolArray, LongArray


def are_held_out(*keys: LongArray, share: float, seed: int = 0) -> BoolArray:
    """True for about `share` of the distinct rows of these columns of numbers, always the same."""
    with np.errstate(over="ignore"):
        state = np.full(len(keys[0]), seed, np.int64).astype(np.uint64)
        for key in keys:
            state = _scrambled(state ^ key.astype(np.int64).astype(np.uint64))
    return state < np.uint64(min(int(share * 2**64), 2**64 - 1))


def _scrambled(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The output function of SplitMix64 (Steele et al., 2014), after one step."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(state ^ (state >> np.uint64(31)))
