"""The search for lines that repeat others: one task for each bucket of their hashes.

A bucket that is larger than a process should hold is divided into leaves on disk first. The number
of buckets is bounded, so that all reads together grow with the number of files, and not with its
square. Of lines with the same key the first in the order of the corpus stays, whatever the numbers
of buckets, leaves, workers and parts of files.
"""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from isoglot.atomic import replace_file, save_array, write_array, write_errors, write_json
from isoglot.corpus.cleaning.clean_text import POSITION_BITS, position_of
from isoglot.corpus.deduplication.hashing import ENTRY, bucket_runs, read_runs
from isoglot.corpus.storage.shards import SPLITS, Split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from isoglot.corpus.cleaning.stage import CleanResult, CleanTask
    from isoglot.types import BoolArray, LongArray

    Entries = npt.NDArray[np.void]

DuplicateKind = Literal["duplicate", "near-duplicate"]
HASHES: dict[DuplicateKind, str] = {"duplicate": "exact", "near-duplicate": "near"}
"""The kind of hash that finds each."""
_BUCKET_BYTES = 1 << 25
_MIN_BUCKETS, _MAX_BUCKETS = 16, 1024
MAX_ENTRIES = 1 << 21
"""Entries that a process holds at a time: 48 MiB, and three times as much to sort them."""
_SIGNATURE_BITS = 64


class HashedPart(NamedTuple):
    """A file group or part of one whose lines are hashed."""

    folder: str
    """Where its hashes are."""
    group: int
    """The number of its file group, in corpus order."""
    rows: dict[Split, int]
    before: dict[Split, int]
    """Rows of the group's earlier parts."""

    def position(self, split: Split) -> int:
        """The position of its first row of a split, among those of all groups."""
        return self.group << POSITION_BITS | position_of(split, self.before[split])


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateSearch:
    """One bucket of the hashes of all parts."""

    kind: DuplicateKind
    bucket: int
    buckets: int
    leaves: int | None
    """Leaves of the bucket; None chooses by its size."""
    parts: Path
    """The file of all parts (`write_parts`)."""
    digest: str
    """A hash of what the hashes were made from."""
    similarity: float
    folder: Path

    @property
    def output(self) -> Path:
        """Where the positions of duplicates go."""
        return positions_file(self.folder, self.kind, self.bucket)


def positions_file(folder: Path, kind: DuplicateKind, bucket: int) -> Path:
    """The positions of the duplicates of one bucket, sorted."""
    return folder / f"{HASHES[kind]}-{bucket:05d}.npy"


def num_buckets(size: int, partitions: int | None) -> int:
    """The number of buckets for this many bytes of files; a setting may ask for fewer."""
    wanted = -(-size // _BUCKET_BYTES) if partitions is None else partitions
    return min(max(_MIN_BUCKETS if partitions is None else 1, wanted), _MAX_BUCKETS)


def hashed_parts(cleaned: Sequence[tuple[CleanTask, CleanResult]]) -> list[HashedPart]:
    """All parts, in corpus order."""
    parts: list[HashedPart] = []
    group, before = -1, dict.fromkeys(SPLITS, 0)
    for task, result in cleaned:
        if task.group.part == 0:
            group, before = group + 1, dict.fromkeys(SPLITS, 0)
        parts.append(HashedPart(str(task.folder), group, result.rows, before))
        before = {split: before[split] + result.rows[split] for split in SPLITS}
    return parts


def write_parts(path: Path, parts: Sequence[HashedPart]) -> None:
    """Writes what every search reads."""
    write_json(path, [part._asdict() for part in parts])


def read_parts(path: Path) -> list[HashedPart]:
    """The parts that `write_parts` wrote."""
    return [HashedPart(**part) for part in json.loads(path.read_text(encoding="utf-8"))]


def is_complete(search: DuplicateSearch, _: int) -> bool:
    """Whether the positions that a search found are still there."""
    return search.output.is_file()


def find_duplicates(search: DuplicateSearch) -> int:
    """Writes the positions of all lines of a bucket that repeat an earlier one, sorted."""
    parts = read_parts(search.parts)
    files = [Path(part.folder) / f"{HASHES[search.kind]}.hashes" for part in parts]
    runs = [bucket_runs(file, search.bucket, search.buckets) for file in files]
    size = sum(int(np.diff(found, axis=0).sum()) for found in runs)
    leaves = search.leaves or -(-size // MAX_ENTRIES)
    blocks = _blocks(parts, files, runs)
    exact = search.kind == "duplicate"
    if leaves <= 1:
        entries = np.concatenate([np.empty(0, ENTRY), *blocks])
        found = [_repeats(entries, exact=exact, similarity=search.similarity)[0]]
    else:
        folder = search.output.with_suffix(".leaves")
        with write_errors(folder):
            found = [
                _search_leaf(leaf, exact=exact, similarity=search.similarity)
                for leaf in _divide(blocks, folder, search.buckets, leaves)
            ]
            shutil.rmtree(folder)
    positions = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    with write_errors(search.output), replace_file(search.output) as partial:
        save_array(partial, positions)
    return len(positions)


def _blocks(
    parts: Sequence[HashedPart], files: Sequence[Path], runs: Sequence[LongArray]
) -> Iterator[Entries]:
    """The entries of a bucket, with positions among those of all groups."""
    heldout = position_of("heldout", 0)
    for part, file, found in zip(parts, files, runs, strict=True):
        for entries in read_runs(file, found):
            is_heldout = entries["position"] >= heldout
            rows = entries["position"] - np.where(is_heldout, heldout, 0)
            starts = np.where(is_heldout, part.position("heldout"), part.position("train"))
            entries["position"] = starts + rows
            yield entries


def _divide(blocks: Iterable[Entries], folder: Path, buckets: int, leaves: int) -> list[Path]:
    """Divides entries by their key into files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = [folder / f"{leaf:05d}" for leaf in range(leaves)]
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("wb")) for path in paths]
        for entries in _joined(blocks, MAX_ENTRIES // 2):
            owners = (entries["first"] // np.uint64(buckets) % np.uint64(leaves)).astype(np.int64)
            ordered = entries[np.argsort(owners, kind="stable")]
            ends = np.cumsum(np.bincount(owners, minlength=leaves))
            for file, part in zip(files, np.split(ordered, ends[:-1]), strict=True):
                write_array(file, part)
    return paths


def _joined(blocks: Iterable[Entries], size: int) -> Iterator[Entries]:
    """The same entries in larger blocks."""
    held: list[Entries] = []
    entries = 0
    for block in blocks:
        held.append(block)
        entries += len(block)
        if entries >= size:
            yield np.concatenate(held)
            held, entries = [], 0
    if held:
        yield np.concatenate(held)


def _search_leaf(path: Path, *, exact: bool, similarity: float) -> LongArray:
    """The positions of a leaf that repeat earlier ones.

    Where many lines share a key (a line that occurs everywhere) a leaf is larger than the others
    and is read twice: for the first line of each key, then for those that repeat it.
    """
    size = path.stat().st_size // ENTRY.itemsize
    if size <= 2 * MAX_ENTRIES:
        return _repeats(np.fromfile(path, ENTRY), exact=exact, similarity=similarity)[0]
    firsts = np.empty(0, ENTRY)
    for entries in _chunks(path):
        both = np.concatenate([firsts, entries])
        _, firsts = _repeats(both, exact=exact, similarity=similarity)
    found = [
        _repeats(np.concatenate([firsts, entries]), exact=exact, similarity=similarity)[0]
        for entries in _chunks(path)
    ]
    return np.concatenate(found)


def _chunks(path: Path) -> Iterator[Entries]:
    with path.open("rb") as file:
        while len(entries := np.fromfile(file, ENTRY, MAX_ENTRIES)):
            yield entries


def _repeats(entries: Entries, *, exact: bool, similarity: float) -> tuple[LongArray, Entries]:
    """Positions that repeat the first position with the same key, and the first of each key.

    The key of equal lines is both keys of an entry; that of similar lines is a band, and the second
    key has the bits from which the similarity is estimated.
    """
    keys = ("first", "second") if exact else ("first",)
    entries = entries[np.lexsort((entries["position"], *(entries[key] for key in keys[::-1])))]
    begins: BoolArray = np.ones(len(entries), np.bool_)
    begins[1:] = np.any([entries[key][1:] != entries[key][:-1] for key in keys], axis=0)
    heads = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    # the first of a key may be there twice
    repeated = entries["position"] != entries["position"][heads]
    if not exact:
        differing = np.bitwise_count(entries["second"] ^ entries["second"][heads])
        # bits of different hashes are equal half of the time
        repeated &= 1 - 2 * differing.astype(np.float64) / _SIGNATURE_BITS >= similarity
    return entries["position"][repeated], entries[begins]
