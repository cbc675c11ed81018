"""One pass over the raw files: cleaned as `isoglot prepare` does, counted, sampled by hash.

A task is the files that are read together, so that files are scanned in several processes. The
sample is bounded, and the same in whichever order records come: a record is in it if its hash is
below a threshold, which is halved whenever the sample has grown too large. So a record that occurs
twice is in it once, with its count; samples of parts of the data, merged, are the sample of the
whole.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.adaptation.inputs import DataFiles
from isoglot.corpus.cleaning.cleaner import CleanConfig, Cleaner
from isoglot.corpus.cleaning.sentences import sentence_splitter
from isoglot.corpus.decontamination import ContaminationIndex
from isoglot.corpus.reading.reader import Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BATCH_RECORDS = 2048
_MAX_RECORDS = 50_000
_MAX_CHARACTERS = 16_000_000
_SPARE = 4
"""The sample holds this many times the lines to hold out, as some of them cannot be held out."""
_WHOLE = 1 << 64


def record_hash(texts: tuple[str, ...], seed: int) -> int:
    """64 bits that depend on the texts and the seed alone."""
    # not the key of `held_out`, whose sentences are other ones
    key = b"adapt" + seed.to_bytes(8, "little")
    return int.from_bytes(blake2b("\t".join(texts).encode(), digest_size=8, key=key).digest())


@dataclass(slots=True, kw_only=True)
class HashSample:
    """The distinct records with the smallest hashes."""

    max_records: int
    max_characters: int
    min_records: int = 0
    """At least so many stay, however long they are."""
    threshold: int = _WHOLE
    records: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Hash -> texts."""
    counts: dict[int, int] = field(default_factory=dict)
    """Hash -> how often the record occurs."""
    characters: int = 0

    def add(self, hash_: int, texts: tuple[str, ...], count: int = 1) -> None:
        """Count a record, and keep it if its hash is small enough."""
        if hash_ >= self.threshold:
            return
        if hash_ in self.counts:
            self.counts[hash_] += count
            return
        self.records[hash_], self.counts[hash_] = texts, count
        self.characters += sum(map(len, texts))
        while self._is_full():
            self._shrink()

    def merge(self, other: HashSample) -> None:
        """Add the sample of another part of the data."""
        if other.threshold < self.threshold:
            self.threshold = other.threshold
            self._cut()
        for hash_, texts in other.records.items():
            self.add(hash_, texts, other.counts[hash_])

    def in_order(self) -> list[tuple[str, ...]]:
        """The records by their hashes, smallest first: a random order."""
        return [self.records[hash_] for hash_ in sorted(self.records)]

    @property
    def num_distinct(self) -> int:
        """Distinct records of all the data: counted, or estimated once the sample is bounded."""
        return len(self.records) * _WHOLE // self.threshold

    @property
    def duplicate_share(self) -> float:
        """Share of the records that occurred before, in the sample."""
        total = sum(self.counts.values())
        return 1 - len(self.counts) / total if total else 0.0

    def _is_full(self) -> bool:
        if len(self.records) <= self.min_records:
            return False
        return len(self.records) > self.max_records or self.characters > self.max_characters

    def _shrink(self) -> None:
        self.threshold //= 2
        self._cut()

    def _cut(self) -> None:
        for hash_ in [hash_ for hash_ in self.records if hash_ >= self.threshold]:
            self.characters -= sum(map(len, self.records.pop(hash_)))
            del self.counts[hash_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Files that are read together."""

    data: DataFiles
    files: tuple[Path, ...]
    heldout: int
    seed: int
    tests: Path | None
    """The index of the texts of test files."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        return " and ".join(map(str, self.files))

    @property
    def size(self) -> int:
        """Bytes of its files on disk."""
        return sum(path.stat().st_size for path in self.files)


@dataclass(slots=True, kw_only=True)
class ScanResult:
    """What was counted in some files, and a sample of them."""

    sample: HashSample
    lines: int = 0
    """Records that are kept."""
    characters: int = 0
    raw_bytes: int = 0
    """UTF-8 bytes of all records read."""
    overlap: int = 0
    """Records in test files, which are not kept."""
    dropped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def merge(self, other: ScanResult) -> None:
        """Add the counts and the sample of other files."""
        self.sample.merge(other.sample)
        self.lines += other.lines
        self.characters += other.characters
        self.raw_bytes += other.raw_bytes
        self.overlap += other.overlap
        self.dropped += other.dropped
        self.seconds += other.seconds


def empty_result(heldout: int) -> ScanResult:
    """The result of no file at all."""
    least = _SPARE * heldout
    return ScanResult(
        sample=HashSample(
            max_records=max(_MAX_RECORDS, least),
            max_characters=_MAX_CHARACTERS,
            min_records=least,
        )
    )


def scan_files(task: ScanTask, told: Callable[[int], None] | None = None) -> ScanResult:
    """Read, clean, count and sample the files of a task; `told` hears of the bytes read."""
    began = time.monotonic()
    result = empty_result(task.heldout)
    subset = task.data.subset()
    cleaner = Cleaner(CleanConfig(), subset.languages)
    tests = ContaminationIndex(task.tests)
    records = _records(task, result)
    while batch := list(islice(records, _BATCH_RECORDS)):
        texts, reasons = cleaner.clean(batch)
        kept = [one for one, reason in zip(texts, reasons, strict=True) if reason is None]
        result.dropped.update(reason for reason in reasons if reason is not None)
        found = tests.find(kept)
        result.overlap += sum(map(bool, found))
        for record, files in zip(kept, found, strict=True):
            if not files:
                result.lines += 1
                result.characters += sum(map(len, record))
                result.sample.add(record_hash(record, task.seed), record)
        if told is not None:
            told(result.raw_bytes)
    result.seconds = time.monotonic() - began
    return result


def _records(task: ScanTask, result: ScanResult) -> Iterator[tuple[str, ...]]:
    """The texts of all records, split into sentences where the format says so."""
    subset = task.data.subset()
    split = sentence_splitter(subset.split, subset.language) if subset.kind == "text" else None
    for found in subset.reader().read(task.files):
        if isinstance(found, Skipped):
            result.dropped[found.reason] += 1
            continue
        result.raw_bytes += sum(len(text.encode("utf-8", "replace")) + 1 for text in found.texts)
        if split is None:
            yield found.texts
        else:
            yield from ((sentence,) for sentence in split(found.texts[0]))
