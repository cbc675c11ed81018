"""Hashes of lines, written to disk by bucket in bounded memory.

A file group writes one file of entries (two 64-bit keys and a position) in runs sorted by
bucket (`first key % buckets`), and an index of where each bucket lies in each run: for each bucket,
and for the end, a row with a 64-bit integer for each run.
The keys of similar lines are in `isoglot.corpus.deduplication.minhash`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import numpy.typing as npt

from isoglot.atomic import write_array, write_errors
from isoglot.ranges import Range

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.reading.sources import Subset
    from isoglot.types import LongArray

Uint64Array = npt.NDArray[np.uint64]
Keys = Callable[[Sequence[bytes]], tuple[Uint64Array, Uint64Array]]
"""Two keys for each line of cleaned text: the encoded text of a record, or two with a tab."""

ENTRY = np.dtype([("first", "<u8"), ("second", "<u8"), ("position", "<i8")])
"""Two keys, and the position (`clean_text.position_of`) of the line they were made of."""
RUN_ENTRIES = 1 << 20
"""Entries of a run: 24 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatesConfig:
    """Which lines count as duplicates; of each only the first is kept."""

    scope: Literal["none", "source", "language"] = "source"
    """Where duplicates are looked for: nowhere, in the same source and language, or in the same
    language of all sources (a source then lacks what earlier ones have). Pairs are compared with
    pairs of the same languages, by both sides."""
    near: bool = False
    """Whether nearly equal lines count too (MinHash)."""
    similarity: Annotated[float, Range(0, 1, above=True)] = 0.8
    """Smallest share of common 5-character shingles of nearly equal lines."""
    partitions: Annotated[int | None, Range(1, 65_536)] = None
    """Number of partitions of the lines by their hash; a process holds one at a time. None chooses
    by the size of the text."""


def scope_of(subset: Subset, config: DuplicatesConfig) -> str:
    """A string that subsets share whose lines are compared with each other."""
    within = subset.language if config.scope == "language" else subset.folder
    return f"{subset.kind} {within}\n"


def exact_keys(subset: Subset, config: DuplicatesConfig) -> Keys:
    """The 128-bit hash of each line of a subset: equal for equal lines within the scope."""
    empty = blake2b(scope_of(subset, config).encode(), digest_size=16)

    def keys(lines: Sequence[bytes]) -> tuple[Uint64Array, Uint64Array]:
        pairs = np.frombuffer(digests(empty, lines), "<u8").reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    return keys


def digests(empty: blake2b, texts: Sequence[bytes]) -> bytes:
    """The digests of texts, one after another, by a hash function that has read none yet."""
    found = []
    copy = empty.copy
    for text in texts:
        state = copy()
        state.update(text)
        found.append(state.digest())
    return b"".join(found)


class HashWriter:
    """Writes the entries of one file group, in a `with` block."""

    def __init__(self, path: Path, buckets: int) -> None:
        """`path` is the file of entries; the index is beside it."""
        self._path = path
        self._buckets = buckets
        self._blocks: list[npt.NDArray[np.void]] = []
        self._held = 0
        self._ends: list[LongArray] = []
        self._written = 0
        with write_errors(path):
            self._file = path.open("wb")

    def append(self, first: Uint64Array, second: Uint64Array, positions: LongArray) -> None:
        """Adds entries."""
        block = np.empty(len(first), ENTRY)
        block["first"], block["second"], block["position"] = first, second, positions
        self._blocks.append(block)
        self._held += len(block)
        if self._held >= RUN_ENTRIES:
            self._flush()

    def __enter__(self) -> HashWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Writes the last run and the index, unless there was an error."""
        if kind is not None:
            self._file.close()
            return
        if self._held:
            self._flush()
        with write_errors(self._path):
            self._file.close()
            index = np.array(self._ends, np.int64).reshape(-1, self._buckets + 1)
            with _index(self._path).open("wb") as file:
                write_array(file, index.T)

    def _flush(self) -> None:
        entries = np.concatenate(self._blocks)
        owners = (entries["first"] % np.uint64(self._buckets)).astype(np.int64)
        entries = entries[np.argsort(owners, kind="stable")]
        ends = np.zeros(self._buckets + 1, np.int64)
        np.cumsum(np.bincount(owners, minlength=self._buckets), out=ends[1:])
        self._ends.append(ends + self._written)
        self._written += len(entries)
        with write_errors(self._path):
            self._file.write(entries.tobytes())
        self._blocks, self._held = [], 0


def bucket_runs(path: Path, bucket: int, buckets: int) -> LongArray:
    """Where one bucket lies in each run of a file group: (2, runs), its first entry and its end."""
    index = _index(path)
    runs = index.stat().st_size // (8 * (buckets + 1))
    return np.fromfile(index, np.int64, 2 * runs, offset=8 * runs * bucket).reshape(2, runs)


def read_runs(path: Path, runs: LongArray) -> Iterator[npt.NDArray[np.void]]:
    """The entries of a bucket, run by run (`bucket_runs`)."""
    with path.open("rb") as file:
        for lower, upper in runs.T.tolist():
            if upper > lower:
                file.seek(lower * ENTRY.itemsize)
                yield np.fromfile(file, ENTRY, upper - lower)


def _index(path: Path) -> Path:
    return path.with_suffix(".index")
