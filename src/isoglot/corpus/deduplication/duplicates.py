"""The deduplication stage: partitions are searched in parallel for lines that repeat others."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from isoglot.atomic import save_array, write_errors
from isoglot.corpus.cleaning.clean_text import POSITION_BITS, DuplicateRows, rows_of
from isoglot.corpus.deduplication.hashing import ENTRY, read_partition
from isoglot.corpus.storage.shards import SPLITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from isoglot.corpus.cleaning.stage import CleanTask
    from isoglot.types import BoolArray, LongArray

DuplicateKind = Literal["duplicate", "near-duplicate"]
_PARTITION_BYTES = 1 << 26
_MIN_PARTITIONS = 16
_SIGNATURE_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateSearch:
    """One partition of the hashes of all file groups."""

    kind: DuplicateKind
    partition: int
    hashes: tuple[Path, ...]
    """The hash file of each file group, in corpus order."""
    similarity: float
    output: Path
    """Where the positions of duplicates go."""


def num_partitions(size: int) -> int:
    """The number of partitions for this many bytes of files: some 100,000 lines in each."""
    return max(_MIN_PARTITIONS, -(-size // _PARTITION_BYTES))


def make_searches(tasks: Sequence[CleanTask], folder: Path) -> list[DuplicateSearch]:
    """The searches that follow the cleaning of all file groups."""
    config, partitions = tasks[0].duplicates, tasks[0].partitions
    kinds: dict[DuplicateKind, str] = {"duplicate": "exact"} if config.scope != "none" else {}
    if kinds and config.near:
        kinds["near-duplicate"] = "near"
    return [
        DuplicateSearch(
            kind=kind,
            partition=partition,
            hashes=tuple(task.hashes(name) for task in tasks),
            similarity=config.similarity,
            output=folder / f"{name}-{partition:05d}.npy",
        )
        for kind, name in kinds.items()
        for partition in range(partitions)
    ]


def find_duplicates(search: DuplicateSearch) -> int:
    """Writes the positions of all lines of a partition that repeat an earlier one, sorted."""
    groups = []
    for number, path in enumerate(search.hashes):
        entries = read_partition(path, search.partition)
        entries["position"] |= number << POSITION_BITS
        groups.append(entries)
    entries = np.concatenate([np.empty(0, ENTRY), *groups])
    del groups
    exact = search.kind == "duplicate"
    positions = _equal(entries) if exact else _similar(entries, search.similarity)
    with write_errors(search.output):
        search.output.parent.mkdir(parents=True, exist_ok=True)
        save_array(search.output, np.unique(positions))
    return len(positions)


def _equal(entries: npt.NDArray[np.void]) -> LongArray:
    """Positions whose two keys an earlier position has too."""
    entries = entries[np.lexsort((entries["position"], entries["second"], entries["first"]))]
    first, second = entries["first"], entries["second"]
    same = (first[1:] == first[:-1]) & (second[1:] == second[:-1])
    repeated: LongArray = entries["position"][1:][same]
    return repeated


def _similar(entries: npt.NDArray[np.void], similarity: float) -> LongArray:
    """Positions that are similar to the first position with the same band."""
    entries = entries[np.lexsort((entries["position"], entries["first"]))]
    if not len(entries):
        return np.empty(0, np.int64)
    begins: BoolArray = np.concatenate([[True], entries["first"][1:] != entries["first"][:-1]])
    heads = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    differing = np.bitwise_count(entries["second"] ^ entries["second"][heads]).astype(np.float64)
    # bits of different hashes are equal half of the time
    estimate = 1 - 2 * differing / _SIGNATURE_BITS
    similar: LongArray = entries["position"][~begins & (estimate >= similarity)]
    return similar


def collect_duplicates(
    tasks: Sequence[CleanTask], searches: Sequence[DuplicateSearch]
) -> list[DuplicateRows | None]:
    """The duplicate rows of each file group; an equal line does not count as a similar one."""
    exact = _by_group([s.output for s in searches if s.kind == "duplicate"], len(tasks))
    near = _by_group([s.output for s in searches if s.kind == "near-duplicate"], len(tasks))
    collected: list[DuplicateRows | None] = []
    for task, equal, similar in zip(tasks, exact, near, strict=True):
        found = {"duplicate": equal, "near-duplicate": np.setdiff1d(similar, equal)}
        found = {reason: positions for reason, positions in found.items() if len(positions)}
        if not found:
            collected.append(None)
            continue
        path = task.folder / "duplicates.npz"
        with write_errors(path):
            np.savez(path, allow_pickle=False, **found)
        collected.append(
            DuplicateRows(
                path=path,
                sha256=sha256(b"".join(rows.tobytes() for rows in found.values())).hexdigest(),
                rows={
                    split: {reason: len(rows_of(rows, split)) for reason, rows in found.items()}
                    for split in SPLITS
                },
            )
        )
    return collected


def _by_group(outputs: Sequence[Path], num_groups: int) -> Iterator[LongArray]:
    """For each file group, the positions in it that any partition found, sorted."""
    found = [np.load(output, mmap_mode="r") for output in outputs]
    for group in range(num_groups):
        bounds = [group << POSITION_BITS, (group + 1) << POSITION_BITS]
        parts = [np.empty(0, np.int64)]
        for positions in found:
            lower, upper = np.searchsorted(positions, bounds)
            parts.append(positions[lower:upper] - bounds[0])
        yield np.unique(np.concatenate(parts))
