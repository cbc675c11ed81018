"""Finds the duplicates of one partition, and hands each unit the rows it has to leave out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from isoglot.corpus.disk import writing
from isoglot.corpus.duplicates.runs import ENTRY, PLACE_BITS, read_partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from isoglot.types import BoolArray, LongArray

_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One partition of the hashes of all units."""

    kind: Literal["duplicate", "near-duplicate"]
    partition: int
    hashes: tuple[Path, ...]
    """The hash file of each unit, in corpus order."""
    similarity: float
    output: Path
    """Where the places go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How many repeated lines a partition holds."""

    number: int


def find_duplicates(search: Search) -> Found:
    """Writes the places of all lines of a partition that repeat an earlier one, sorted."""
    parts = []
    for number, path in enumerate(search.hashes):
        entries = read_partition(path, search.partition)
        entries["place"] |= number << PLACE_BITS
        parts.append(entries)
    entries = np.concatenate([np.empty(0, ENTRY), *parts])
    del parts
    if search.kind == "duplicate":
        places = _repeated(entries)
    else:
        places = _similar(entries, search.similarity)
    with writing(search.output):
        search.output.parent.mkdir(parents=True, exist_ok=True)
        np.save(search.output, np.unique(places))
    return Found(number=len(places))


def hand_out(outputs: Sequence[Path], units: int) -> Iterator[LongArray]:
    """For each unit, the places in it that any partition found, sorted."""
    found = [np.load(output, mmap_mode="r") for output in outputs]
    for unit in range(units):
        bounds = [unit << PLACE_BITS, (unit + 1) << PLACE_BITS]
        parts = [np.empty(0, np.int64)]
        for places in found:
            lower, upper = np.searchsorted(places, bounds)
            parts.append(places[lower:upper] - bounds[0])
        yield np.unique(np.concatenate(parts))


def _repeated(entries: npt.NDArray[np.void]) -> LongArray:
    """Places whose both keys an earlier place has."""
    order = np.lexsort((entries["place"], entries["second"], entries["first"]))
    entries = entries[order]
    same = (entries["first"][1:] == entries["first"][:-1]) & (
        entries["second"][1:] == entries["second"][:-1]
    )
    repeated: LongArray = entries["place"][1:][same]
    return repeated


def _similar(entries: npt.NDArray[np.void], similarity: float) -> LongArray:
    """Places that are similar to the first place with the same band."""
    order = np.lexsort((entries["place"], entries["first"]))
    entries = entries[order]
    if not len(entries):
        return np.empty(0, np.int64)
    begins: BoolArray = np.concatenate([[True], entries["first"][1:] != entries["first"][:-1]])
    heads = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    differing = np.bitwise_count(entries["second"] ^ entries["second"][heads]).astype(np.float64)
    # two bits of different hashes are equal half of the time
    estimate = 1 - 2 * differing / _BITS
    similar: LongArray = entries["place"][~begins & (estimate >= similarity)]
    return similar
