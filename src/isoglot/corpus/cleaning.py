"""The first stage: the raw files of a unit become clean text, train and held-out apart.

    raw files --reader--> records --split, normalise, checks--> kept --> train.txt, heldout.txt
                                                                     --> hashes (for duplicates)

Records go through in batches, because some checks look at many lines at once; memory stays flat.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.clean import Cleaner
from isoglot.corpus.cleaned import Cleaned, CleanedWriter
from isoglot.corpus.contamination import Excluded
from isoglot.corpus.disk import writing
from isoglot.corpus.dropped import DroppedLines
from isoglot.corpus.duplicates import HashRuns, keys_for, place_of, similar_keys_for
from isoglot.corpus.duplicates.keys import BANDS
from isoglot.corpus.heldout import SPLITS, split_of
from isoglot.corpus.pretokenize import Pretokenization
from isoglot.corpus.readers import Record, Skipped
from isoglot.corpus.splitting import splitter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.cleaned import CleanTask
    from isoglot.types import LongArray

_BATCH = 2048
_BATCH_CHARACTERS = 1 << 22
"""A batch ends early where its lines are long."""


def clean_unit(task: CleanTask) -> Cleaned:
    """Reads, cleans and divides all files of one unit."""
    # readers name the files they cannot read, so what goes wrong here is the writing
    with writing(task.folder), ExitStack() as stack:
        task.folder.mkdir(parents=True, exist_ok=True)
        return _Cleaning(task, stack).run()


class _Cleaning:
    """The work on one unit: batches of records in, lines and hashes out."""

    def __init__(self, task: CleanTask, stack: ExitStack) -> None:
        cell = task.unit.cell
        self._task = task
        self._started = time.monotonic()
        self._is_text = cell.kind == "text"
        self._split = splitter(cell.split, cell.language) if self._is_text else None
        self._cleaner = Cleaner(task.config, cell.languages)
        self._words = Pretokenization(task.pretokenize)
        self._excluded = Excluded(task.excluded)
        self._writers = {split: CleanedWriter(task, split, stack) for split in SPLITS}
        self._dropped_lines = stack.enter_context(DroppedLines(task.dropped, cell))
        self._exact = self._near = None
        if task.duplicates.scope != "none":
            self._exact = stack.enter_context(HashRuns(task.hashes("exact"), task.partitions))
            self._exact_keys = keys_for(cell, task.duplicates)
            if task.duplicates.near:
                self._near = stack.enter_context(HashRuns(task.hashes("near"), task.partitions))
                self._near_keys = similar_keys_for(cell, task.duplicates)
        self._lines = self._bytes = self._documents = 0
        self._dropped: Counter[str] = Counter()
        self._contaminated: Counter[str] = Counter()

    def run(self) -> Cleaned:
        """All files."""
        for batch in self._batches():
            self._clean(batch)
        rows = {split: writer.rows for split, writer in self._writers.items()}
        return Cleaned(
            lines=self._lines,
            read=sum(rows.values()) + self._dropped.total(),
            bytes=self._bytes,
            documents=self._documents,
            rows=rows,
            marks={split: writer.close() for split, writer in self._writers.items()},
            dropped=dict(sorted(self._dropped.items())),
            contaminated=dict(sorted(self._contaminated.items())),
            seconds=time.monotonic() - self._started,
        )

    def _batches(self) -> Iterator[list[Record]]:
        """The sentences or pairs of the files, many at a time; what is skipped is counted."""
        unit = self._task.unit
        batch: list[Record] = []
        characters = 0
        for found in unit.cell.reader().read(unit.files):
            self._lines += 1
            if isinstance(found, Skipped):
                self._drop(found, found.reason, (found.text,))
                continue
            self._documents = max(self._documents, found.document + 1)
            size = sum(map(len, found.texts))
            characters += size
            self._bytes += size if all(map(str.isascii, found.texts)) else _bytes(found.texts)
            if self._split is None:
                batch.append(found)
            else:
                sentences = self._split(found.texts[0])
                if len(sentences) == 1:
                    batch.append(found)
                else:
                    batch += [
                        Record((sentence,), found.document, found.line, found.file)
                        for sentence in sentences
                    ]
            if len(batch) >= _BATCH or characters >= _BATCH_CHARACTERS:
                # a long document may give many more at once than the checks are to hold
                rest = iter(batch)
                while part := list(islice(rest, _BATCH)):
                    yield part
                batch, characters = [], 0
        if batch:
            yield batch

    def _clean(self, batch: list[Record]) -> None:
        """Counts or writes every record of a batch."""
        normalise = self._cleaner.normalise
        texts = [tuple(map(normalise, record.texts)) for record in batch]
        reasons = self._cleaner.reasons(texts)
        kept = [number for number, reason in enumerate(reasons) if reason is None]
        found = self._excluded.find([texts[number] for number in kept])
        for number, files in zip(kept, found, strict=True):
            if files:
                reasons[number] = "contaminated"
                self._contaminated.update(self._task.excluded_files[file][0] for file in files)
        places, clean = [], []
        for record, cleaned, reason in zip(batch, texts, reasons, strict=True):
            if reason is None:
                places.append(self._keep(record, cleaned))
                clean.append(cleaned)
            else:
                self._drop(record, reason, record.texts)
        self._hash(clean, np.array(places, np.int64))

    def _keep(self, record: Record, texts: tuple[str, ...]) -> int:
        """Writes a record; gives its place."""
        task = self._task
        split = split_of(texts, share=task.heldout_share, seed=task.heldout_seed)
        if task.pretokenize:
            texts = tuple(map(self._words.apply, texts, task.unit.cell.languages))
        line = "\t".join(texts)
        if self._is_text:
            line = f"{record.line}\t{record.document}\t{line}\n"
        else:
            line = f"{record.line}\t{line}\n"
        return place_of(split, self._writers[split].write(line))

    def _hash(self, texts: list[tuple[str, ...]], places: LongArray) -> None:
        if self._exact is not None and texts:
            self._exact.append(*self._exact_keys(texts), places)
        if self._near is not None and texts:
            self._near.append(*self._near_keys(texts), np.tile(places, BANDS))

    def _drop(self, record: Record | Skipped, reason: str, texts: tuple[str, ...]) -> None:
        self._dropped[reason] += 1
        file = self._task.unit.files[record.file]
        self._dropped_lines.write(file, record.line, reason, texts)


def _bytes(texts: tuple[str, ...]) -> int:
    return sum(len(text.encode("utf-8", "replace")) for text in texts)
