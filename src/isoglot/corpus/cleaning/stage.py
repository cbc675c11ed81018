"""The cleaning stage: the raw files of a group become clean text, train and held-out separate.

    raw files --reader--> records --split, normalize, checks--> kept --> train.txt, heldout.txt
                                                                     --> hashes (for deduplication)

Records go through in batches, because some checks look at many lines at once; memory is bounded.

A sentence is held out by a hash of its content: it is on the same side in every source, however
often it occurs. A pair is held out if either side is, so no held-out sentence is trained on through
its translation.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.atomic import write_errors
from isoglot.corpus.cleaning.clean_text import CleanTextWriter, Offset, has_text, position_of
from isoglot.corpus.cleaning.cleaner import CleanConfig, Cleaner
from isoglot.corpus.cleaning.column_order import MAX_COMPARED, are_swapped
from isoglot.corpus.cleaning.dropped_lines import DroppedLines
from isoglot.corpus.cleaning.sentences import sentence_splitter
from isoglot.corpus.decontamination import ContaminationIndex
from isoglot.corpus.deduplication.hashing import (
    DuplicatesConfig,
    HashWriter,
    digests,
    exact_keys,
)
from isoglot.corpus.reading.reader import LineReader, Record, Skipped
from isoglot.corpus.reading.sources import FileGroup
from isoglot.corpus.storage.shards import SPLITS, Split
from isoglot.corpus.tokenization.pretokenization import Method, Pretokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.corpus.deduplication.hashing import Keys
    from isoglot.types import BoolArray

_BATCH_RECORDS = 2048
_BATCH_CHARACTERS = 1 << 22
"""A batch ends early where its lines are long."""
_MIN_COMPARED = 20
"""Fewer pairs do not say in which order their sides are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTask:
    """Everything that cleaning one file group reads."""

    group: FileGroup
    inputs: tuple[str, ...]
    """SHA-256 of its files."""
    folder: Path
    """Where its cleaned text goes."""
    config: CleanConfig
    heldout_share: float
    heldout_seed: int
    pretokenize: dict[str, Method]
    duplicates: DuplicatesConfig
    buckets: int
    """Buckets of the hashes for deduplication."""
    excluded: Path | None
    """The index of the texts of evaluation files."""
    excluded_files: tuple[tuple[str, str], ...]
    """Name and SHA-256 of the files in it."""
    dropped_file: Path | None
    """Where dropped lines are written."""

    def path(self, split: Split) -> Path:
        """The cleaned text of one split."""
        return self.folder / f"{split}.txt"

    def hashes(self, kind: str) -> Path:
        """The hashes of its lines: `exact` or `near`."""
        return self.folder / f"{kind}.hashes"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanResult:
    """The counts of the records of a file group, and the offsets of its slices."""

    lines: int
    """Lines (rows, segments) of the files."""
    read: int
    """Records: sentences or pairs; more than lines where lines were split."""
    bytes: int
    """UTF-8 bytes of the text read."""
    documents: int
    edges: tuple[bool, bool] | None = None
    """Where a document may have several lines: whether the first line goes on with the document
    before it, and whether the last leaves one open; None where no line says so."""
    rows: dict[Split, int]
    offsets: dict[Split, tuple[Offset, ...]]
    """Places in the cleaned text at which lines start; last, its end."""
    dropped: dict[str, int]
    contaminated: dict[str, int] = field(default_factory=dict)
    """Evaluation file -> records dropped because of it."""
    swapped: bool = False
    """Whether the sides of pairs look like each other's language."""
    seconds: float


def is_complete(task: CleanTask, result: CleanResult) -> bool:
    """Whether the cleaned text of a finished file group is still there."""
    return all(has_text(task.path(split), result.offsets[split][-1]) for split in SPLITS)


def clean_files(task: CleanTask) -> CleanResult:
    """Reads, cleans and divides all files of one group."""
    # readers name the files they cannot read, so an OSError here comes from writing
    with write_errors(task.folder), ExitStack() as stack, _rare_collections():
        task.folder.mkdir(parents=True, exist_ok=True)
        return _Cleaning(task, stack).run()


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collects cyclic garbage after 50,000 new objects, the lines of some batches, and not 700."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Cleaning:
    """The work on one file group: batches of records in, lines and hashes out."""

    def __init__(self, task: CleanTask, stack: ExitStack) -> None:
        subset = task.group.subset
        self._task = task
        self._started = time.monotonic()
        self._is_text = subset.kind == "text"
        self._split = sentence_splitter(subset.split, subset.language) if self._is_text else None
        self._cleaner = Cleaner(task.config, subset.languages)
        self._pretokenizer = Pretokenizer(task.pretokenize)
        self._excluded = ContaminationIndex(task.excluded)
        self._writers = {split: CleanTextWriter(task.path(split), stack) for split in SPLITS}
        self._dropped_lines = stack.enter_context(DroppedLines(task.dropped_file, subset))
        keys: dict[str, Keys] = {}
        if task.duplicates.scope != "none":
            keys["exact"] = exact_keys(subset, task.duplicates)
            if task.duplicates.near:
                from isoglot.corpus.deduplication.minhash import minhash_keys

                keys["near"] = minhash_keys(subset, task.duplicates)
        self._hash_writers = [
            (stack.enter_context(HashWriter(task.hashes(kind), task.buckets)), keys_of)
            for kind, keys_of in keys.items()
        ]
        self._lines = self._bytes = self._documents = 0
        reader = subset.reader()
        self._spans = isinstance(reader, LineReader) and reader.documents_span_lines
        self._first_inside: bool | None = None
        self._last_inside = False
        self._dropped: Counter[str] = Counter()
        self._contaminated: Counter[str] = Counter()
        self._first: list[tuple[str, ...]] = []
        """Of pairs, the first ones: is their order that of the languages?"""

    def run(self) -> CleanResult:
        """All files."""
        for batch in self._batches():
            self._clean(batch)
        rows = {split: writer.rows for split, writer in self._writers.items()}
        return CleanResult(
            lines=self._lines,
            read=sum(rows.values()) + self._dropped.total(),
            bytes=self._bytes,
            documents=self._documents,
            edges=None if self._first_inside is None else (self._first_inside, self._last_inside),
            rows=rows,
            offsets={split: writer.close() for split, writer in self._writers.items()},
            dropped=dict(sorted(self._dropped.items())),
            contaminated=dict(sorted(self._contaminated.items())),
            swapped=self._is_swapped(),
            seconds=time.monotonic() - self._started,
        )

    def _batches(self) -> Iterator[list[Record]]:
        """The sentences or pairs of the files in batches; skipped lines are counted."""
        batch: list[Record] = []
        characters = 0
        split, spans = self._split, self._spans
        for found in self._task.group.records():
            self._lines += 1
            if spans:
                self._note_edge(found)
            if isinstance(found, Skipped):
                self._drop(found, found.reason, (found.text,))
                continue
            if found.document >= self._documents:
                self._documents = found.document + 1
            for text in found.texts:
                characters += len(text)
                self._bytes += len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
            if split is None or len(sentences := split(found.texts[0])) < 2:
                batch.append(found)
            else:
                batch += [Record((s,), found.document, found.line, found.file) for s in sentences]
            if len(batch) >= _BATCH_RECORDS or characters >= _BATCH_CHARACTERS:
                # a long document may give many more sentences than a batch holds
                rest = iter(batch)
                while part := list(islice(rest, _BATCH_RECORDS)):
                    yield part
                batch, characters = [], 0
        if batch:
            yield batch

    def _is_swapped(self) -> bool:
        """Whether the first pairs are in the other order; of a large file, those of one part."""
        if len(self._first) < _MIN_COMPARED or self._task.group.part:
            return False
        first, second = zip(*self._first, strict=True)
        return are_swapped(first, second, self._task.group.subset.languages)

    def _note_edge(self, found: Record | Skipped) -> None:
        """Lines of text are inside a document; blank ones end it, other skipped ones do not."""
        inside = isinstance(found, Record)
        if isinstance(found, Record) or found.reason == "blank":
            if self._first_inside is None:
                self._first_inside = inside
            self._last_inside = inside

    def _clean(self, batch: list[Record]) -> None:
        """Writes or drops every record of a batch."""
        texts, reasons = self._cleaner.clean([record.texts for record in batch])
        if not self._is_text and len(self._first) < MAX_COMPARED:
            # sides in the other order may all be dropped for their script or language
            told = zip(texts, reasons, strict=True)
            whole = [one for one, reason in told if reason in (None, "script", "language")]
            self._first += whole[: MAX_COMPARED - len(self._first)]
        kept = [number for number, reason in enumerate(reasons) if reason is None]
        found = self._excluded.find([texts[number] for number in kept])
        for number, files in zip(kept, found, strict=True):
            if files:
                reasons[number] = "contaminated"
                self._contaminated.update(self._task.excluded_files[file][0] for file in files)
        for record, reason in zip(batch, reasons, strict=True):
            if reason is not None:
                self._drop(record, reason, record.texts)
        kept = [number for number, reason in enumerate(reasons) if reason is None]
        if kept:
            self._keep([batch[number] for number in kept], [texts[number] for number in kept])

    def _keep(self, records: list[Record], texts: list[tuple[str, ...]]) -> None:
        """Writes records, and the hashes of their texts."""
        task = self._task
        encoded = [[text.encode() for text in column] for column in zip(*texts, strict=True)]
        heldout = held_out(encoded, share=task.heldout_share, seed=task.heldout_seed)
        cleaned = lines = join_columns(encoded)
        if task.pretokenize:
            apply, languages = self._pretokenizer.apply, task.group.subset.languages
            lines = ["\t".join(map(apply, record, languages)).encode() for record in texts]
        positions = np.empty(len(records), np.int64)
        for split in SPLITS:
            chosen = np.flatnonzero(heldout == (split == "heldout"))
            rows = chosen.tolist()
            first = self._writers[split].write(
                [lines[row] for row in rows],
                [(records[row].line, records[row].document) for row in rows],
            )
            positions[chosen] = position_of(split, first) + np.arange(len(rows))
        for writer, keys_of in self._hash_writers:
            one, other = keys_of(cleaned)
            writer.append(one, other, np.tile(positions, len(one) // len(positions)))

    def _drop(self, record: Record | Skipped, reason: str, texts: tuple[str, ...]) -> None:
        self._dropped[reason] += 1
        file = self._task.group.files[record.file]
        self._dropped_lines.write(file, record.line, reason, texts)


def join_columns(columns: Sequence[Sequence[bytes]]) -> Sequence[bytes]:
    """The texts of each record in one line, with tabs between them."""
    return columns[0] if len(columns) == 1 else list(map(b"\t".join, zip(*columns, strict=True)))


def held_out(columns: Sequence[Sequence[bytes]], *, share: float, seed: int) -> BoolArray:
    """Which records of encoded, normalized texts are held out: about `share` of distinct texts.

    A record has a text in each column, and is held out if one of them is.
    """
    found = np.zeros(len(columns[0]), np.bool_)
    limit = int(share * 2**64)
    if limit >= 2**64:  # a share of 1: no 64-bit integer
        return ~found
    if limit:
        empty = blake2b(digest_size=8, key=seed.to_bytes(8, "little", signed=True))
        for texts in columns:
            found |= np.frombuffer(digests(empty, texts), "<u8") < np.uint64(limit)
    return found
