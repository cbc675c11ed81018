"""Examples that are not read: counted by reason, each with the setting to change, and told.

A slice applies `Limit`s in order; an example that several of them drop counts for the first. A
stream's sentence has the reasons of all its languages, and names those that lose most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isoglot.batching.mixture import OpenStream
    from isoglot.batching.streams.base import LanguageSlice
    from isoglot.types import BoolArray, IntArray, LongArray

MAX_SHARE = 0.1
"""Share of dropped examples above which the note is a warning."""
_KEPT_PERCENT = 99
"""Percent of the examples that the proposed value of a setting keeps."""
_NAMED = 10
"""Languages that a note names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """How many examples a setting drops."""

    reason: str
    """What they have: `have more than 128 tokens`."""
    setting: str
    count: int
    enough: int | None = None
    """The smallest value of the setting that would keep 99 %; none if so many are kept already."""


class Limit(NamedTuple):
    """A setting that drops examples."""

    good: BoolArray
    """Which examples are within it."""
    reason: str
    setting: str
    lengths: IntArray | None = None
    """What the setting limits from above; none if no value of it would keep them."""


class DropCounter:
    """Counts dropped examples some at a time; each time the same limits are given."""

    def __init__(self) -> None:
        self._total = 0
        self._limits: tuple[Limit, ...] = ()
        self._dropped: list[int] = []
        self._good: list[int] = []
        self._of_length: list[LongArray] = []
        """Examples of each length."""

    def add(self, limits: Sequence[Limit]) -> None:
        """Count more examples."""
        if not self._limits:
            self._limits = tuple(limits)
            self._dropped, self._good = [0] * len(limits), [0] * len(limits)
            self._of_length = [np.zeros(1, np.int64) for _ in limits]
        left = np.ones(len(limits[0].good), np.bool_)
        self._total += len(left)
        for number, limit in enumerate(limits):
            self._dropped[number] += int(np.count_nonzero(left & ~limit.good))
            self._good[number] += int(np.count_nonzero(limit.good))
            if limit.lengths is not None:
                before = self._of_length[number]
                counts = np.bincount(limit.lengths, minlength=len(before))
                counts[: len(before)] += before
                self._of_length[number] = counts
            left &= limit.good

    def result(self) -> tuple[Dropped, ...]:
        """The examples that each limit drops, those of the limits before it not counted again."""
        found = []
        for limit, count, good, of_length in zip(
            self._limits, self._dropped, self._good, self._of_length, strict=True
        ):
            if count:
                enough = None
                if limit.lengths is not None and 100 * good / self._total < _KEPT_PERCENT:
                    # the least length that so many percent of the examples do not exceed
                    place = np.ceil((self._total - 1) * _KEPT_PERCENT / 100)
                    enough = int(np.searchsorted(np.cumsum(of_length), place, "right"))
                found.append(
                    Dropped(reason=limit.reason, setting=limit.setting, count=count, enough=enough)
                )
        return tuple(found)


class DropNote(NamedTuple):
    """A sentence on the examples that a stream does not read."""

    text: str
    is_warning: bool
    """Are they more than a tenth?"""


def describe_dropped(streams: Iterable[OpenStream]) -> Iterator[DropNote]:
    """A sentence for every stream of which examples are not read."""
    for stream in streams:
        slices = [*stream.slices, *stream.unread]
        unread = [name for name in stream.missing if name not in {one.name for one in slices}]
        if unread:
            yield DropNote(
                f"{stream.config.kind}: {_listed(unread)}: none of its examples is read.",
                is_warning=False,
            )
        dropped = sum(one.num_dropped for one in slices)
        total = dropped + sum(one.num_examples for one in slices)
        if dropped:
            yield DropNote(
                f"{stream.config.kind}: {dropped:,} of {total:,} examples are dropped "
                f"({_percent(dropped, total)}): {_reasons(slices)}.{_most(slices)}",
                is_warning=dropped > MAX_SHARE * total or bool(stream.unread),
            )


def _reasons(slices: Sequence[LanguageSlice]) -> str:
    """The reasons of all slices with their counts and settings, the most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    enough: dict[tuple[str, str], int] = {}
    for one in (found for part in slices for found in part.dropped):
        key = one.reason, one.setting
        counts[key] = counts.get(key, 0) + one.count
        if one.enough is not None:
            enough[key] = max(enough.get(key, 0), one.enough)
    parts = []
    for key in sorted(counts, key=lambda key: -counts[key]):
        reason, setting = key
        value = f", {enough[key]:,} would keep {_KEPT_PERCENT} %" if key in enough else ""
        parts.append(f"{counts[key]:,} {reason} ({setting}{value})")
    return "; ".join(parts)


def _most(slices: Sequence[LanguageSlice]) -> str:
    """A sentence on the languages that lose more than the others may, if there are others."""
    shares = {one: one.num_dropped / max(one.num_dropped + one.num_examples, 1) for one in slices}
    many = sorted((one for one in slices if shares[one] > MAX_SHARE), key=lambda one: -shares[one])
    if not many or len(slices) == 1:
        return ""
    named = [f"{one.name} ({100 * shares[one]:.0f} %)" for one in many]
    return f" More than {100 * MAX_SHARE:.0f} %: {_listed(named)}."


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 1 else f"{share:.2g} %"
