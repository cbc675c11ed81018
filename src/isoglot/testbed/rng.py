"""A small random generator that gives the same numbers in every process and Python version.

Reads a seed, the name of a stream and an index; gives integers. Generator i of a stream does not
depend on generators before it, and making one costs a microsecond (`random.Random` costs ten).
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from hashlib import blake2b
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def stable_hash(text: str) -> int:
    """A hash that is the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


@cache
def _stream_key(seed: int, stream: str) -> int:
    return stable_hash(f"{seed}/{stream}")


class Rng:
    """SplitMix64 from a state given by seed, stream and index; choices are uniform."""

    __slots__ = ("_state",)

    def __init__(self, seed: int, stream: str, index: int) -> None:
        state = (_stream_key(seed, stream) + index * 0xD1342543DE82EF95) & _MASK
        self._state = (state ^ (state >> 29)) * 0xBF58476D1CE4E5B9 & _MASK

    def below(self, limit: int) -> int:
        """An integer from 0 to limit - 1 (the bias of the modulus is under 1e-15)."""
        self._state = state = (self._state + _GOLDEN) & _MASK
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK
        return (state ^ (state >> 31)) % limit

    def chance(self, percent: int) -> bool:
        """True with this probability."""
        return self.below(100) < percent

    def choice(self, items: Sequence[T], context: str = "") -> T:  # noqa: ARG002
        """One of the items; `context` is the word they stand beside."""
        return items[self.below(len(items))]


class ZipfRng(Rng):
    """Chooses by Zipf's law; every context ranks the items in its own fixed order."""

    __slots__ = ()

    @override
    def choice(self, items: Sequence[T], context: str = "") -> T:
        shares = _zipf(len(items))
        ranked: tuple[T, ...] = _ranked(tuple(items), context)
        return ranked[bisect_right(shares, self.below(shares[-1]))]


@cache
def _zipf(number: int) -> tuple[int, ...]:
    """Cumulative sums of 1/1, 1/2, 1/3 ..., in ten-thousandths."""
    return tuple(accumulate(10_000 // rank for rank in range(1, number + 1)))


@cache
def _ranked(items: tuple[T, ...], context: str) -> tuple[T, ...]:
    return tuple(sorted(items, key=lambda item: stable_hash(f"0/{context}/{item}")))
