"""A small random generator that is the same in every process and Python version.

Reads a seed, the name of a stream and an index; gives integers. Draw i of a stream never needs
the draws before it, and making a generator costs a microsecond (`random.Random` costs ten).
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


def number_of(name: str) -> int:
    """A number for a name, the same in every process."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


@cache
def _stream_key(seed: int, stream: str) -> int:
    return number_of(f"{seed}/{stream}")


class Draws:
    """SplitMix64, started at a place that depends on seed, stream and index."""

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
        """True in that many cases of a hundred."""
        return self.below(100) < percent

    def choice(self, items: Sequence[T], company: str = "") -> T:  # noqa: ARG002
        """One of the items, all alike whatever they stand beside."""
        return items[self.below(len(items))]


class UnevenDraws(Draws):
    """Draws by Zipf's law: every company has its favourites among the items."""

    __slots__ = ()

    @override
    def choice(self, items: Sequence[T], company: str = "") -> T:
        """The items' order, and so how often each comes, is the company's."""
        shares = _zipf(len(items))
        liked: tuple[T, ...] = _by_liking(tuple(items), company)
        return liked[bisect_right(shares, self.below(shares[-1]))]


@cache
def _zipf(number: int) -> tuple[int, ...]:
    """Sums of 1/1, 1/2, 1/3 ..., in parts of ten thousand."""
    return tuple(accumulate(10_000 // rank for rank in range(1, number + 1)))


@cache
def _by_liking(items: tuple[T, ...], company: str) -> tuple[T, ...]:
    return tuple(sorted(items, key=lambda item: number_of(f"0/{company}/{item}")))
