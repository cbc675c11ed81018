"""What is counted as standing near each other, and what a pair at a distance weighs.

MLM-GC section 3.2 gives a neighbour at distance d the weight c/(d + 1); the authors' released
counter, like GloVe, c/d. The two differ by more than a constant. Weights are kept as integers over
a common denominator until the languages are joined, so sums are exact in whatever order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from isoglot.errors import require

if TYPE_CHECKING:
    from isoglot.types import LongArray

MOST_WINDOW = 15
"""A distance shares 32 bits with a token id (`kernels`): four of them are its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairConfig:
    """Which pairs of tokens are counted, and how."""

    window: int = 2
    """Neighbours on each side; never over the end of a sentence."""
    weights: Literal["paper", "released"] = "paper"
    """A neighbour at distance d weighs 1/(d + 1) (paper) or 1/d (released code, GloVe)."""
    constants: bool = True
    """Multiply by tokens of the pivot language ÷ tokens of the language (the paper's c_lang)."""
    pivot: str | None = None
    """The pivot language; none means en, or where there is no en the one with the most tokens."""
    languages: tuple[str, ...] = ()
    """Languages to count, all into one table; none means all there are."""
    sources: tuple[str, ...] = ()
    """Sources to count in, each side of pairs in its language; none means all of kind text."""
    floor: float = 0.0
    """Pairs that count less than this are left out."""
    kept: Literal["float32", "float16"] = "float32"
    """How logs of counts are kept; float16 errs by up to 0.05 %, and saves 2 of 12 bytes."""
    memory: float = 1024.0
    """MiB that counting may take beside the mapped text, whatever its size; changes no count."""

    def __post_init__(self) -> None:
        require(1 <= self.window <= MOST_WINDOW, f"pairs.window must be from 1 to {MOST_WINDOW}")
        require(self.floor >= 0, "pairs.floor must not be negative")
        require(self.memory > 0, "pairs.memory must be above 0")

    @property
    def denominator(self) -> int:
        """What `shares` are divided by in the end."""
        return math.lcm(*(distance + self._added for distance in range(1, self.window + 1)))

    def shares(self) -> LongArray:
        """By distance, from 0: the weight of a neighbour times the denominator."""
        distances = range(1, self.window + 1)
        return np.array([0, *(self.denominator // (d + self._added) for d in distances)], np.int64)

    @property
    def _added(self) -> int:
        return 1 if self.weights == "paper" else 0
