"""One pass over the raw files: cleaned as `isoglot prepare` does, counted, sampled.

A task is the files that are read together, so that files are scanned in several processes.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.adaptation.inputs import DataFiles
from isoglot.adaptation.sample import HashSample, record_hash
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
        texts = [tuple(map(cleaner.normalize, one)) for one in batch]
        reasons = cleaner.reasons(texts)
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
