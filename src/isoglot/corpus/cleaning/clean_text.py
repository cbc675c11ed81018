"""Files of cleaned text, the slices of them that later stages read, and files of dropped lines.

Each file group has a folder with train.txt and heldout.txt: tokenizer training samples them,
encoding reads them once. A line is `line TAB document TAB text` for text and `line TAB first TAB
second` for pairs, where `line` is the line of the raw file; cleaned text holds no tab.

For encoding, large files are cut into slices and slices of small files are grouped, so that a group
holds about the text of one shard. The division depends on nothing but the text.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isoglot.atomic import replace_file, write_errors
from isoglot.corpus.engine.runner import task_key
from isoglot.corpus.reading.sources import Subset
from isoglot.corpus.storage.shards import SPLITS, Split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isoglot.corpus.cleaning.stage import CleanResult, CleanTask
    from isoglot.types import LongArray

BYTES_PER_TOKEN = 3
"""Fewer bytes than most tokens have, so that a group seldom fills more than one shard."""
_SPLIT_BITS = 40
POSITION_BITS = _SPLIT_BITS + 1
"""Bits of `position_of`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The start of a line in a file of cleaned text."""

    row: int
    byte: int


class CleanTextWriter:
    """Writes the cleaned text of one split, noting an offset after every `slice_bytes` or so."""

    def __init__(self, path: Path, slice_bytes: int, stack: ExitStack) -> None:
        """The file is open until `close`, or until the stack unwinds."""
        self.rows = 0
        self._path = path
        self._slice_bytes = slice_bytes
        self._byte = 0
        self._offsets = [Offset(row=0, byte=0)]
        with write_errors(path):
            self._file: IO[bytes] = stack.enter_context(path.open("wb", 1 << 18))

    def write(self, line: str) -> int:
        """Adds a line; returns its row."""
        data = line.encode()
        try:
            self._file.write(data)
        except OSError as error:
            with write_errors(self._path):
                raise error from None
        row, self.rows = self.rows, self.rows + 1
        self._byte += len(data)
        if self._byte - self._offsets[-1].byte >= self._slice_bytes:
            self._offsets.append(Offset(row=self.rows, byte=self._byte))
        return row

    def close(self) -> tuple[Offset, ...]:
        """Flushes the file; returns the offsets of all slices and of the end."""
        with write_errors(self._path):
            self._file.close()
        if self._offsets[-1].byte != self._byte or len(self._offsets) == 1:
            self._offsets.append(Offset(row=self.rows, byte=self._byte))
        return tuple(self._offsets)


def position_of(split: Split, row: int) -> int:
    """A row of one split of a file group as one number; rows of a split are contiguous."""
    return SPLITS.index(split) << _SPLIT_BITS | row


def rows_of(positions: LongArray, split: Split) -> LongArray:
    """The rows of one split among (sorted) positions."""
    start = SPLITS.index(split) << _SPLIT_BITS
    lower, upper = np.searchsorted(positions, [start, start + (1 << _SPLIT_BITS)])
    return positions[lower:upper] - start


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateRows:
    """The rows of one file group that repeat earlier ones."""

    path: Path
    """A .npz file: reason -> positions."""
    sha256: str
    rows: dict[Split, dict[str, int]]
    """Split -> reason -> number of rows."""


class CleanedGroup(NamedTuple):
    """A file group after cleaning and deduplication."""

    task: CleanTask
    result: CleanResult
    duplicates: DuplicateRows | None


class CleanRecord(NamedTuple):
    """One line of cleaned text."""

    line: int
    """Its line in the raw file."""
    document: int
    """Counted over the subset; 0 for pairs."""
    texts: tuple[str, ...]
    reason: str | None
    """Why it is dropped after all, if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSlice:
    """Consecutive lines of the cleaned text of one file group."""

    subset: Subset
    key: str
    """A hash of everything that the text was made from."""
    file: Path
    """The (first) raw file they come from."""
    text: Path
    split: Split
    start: Offset
    end: Offset
    documents_before: int
    """Documents of the subset in earlier file groups."""
    duplicates: DuplicateRows | None

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.end.byte - self.start.byte

    def records(self) -> Iterator[CleanRecord]:
        """Its lines."""
        reasons = self._reasons()
        is_text = self.subset.kind == "text"
        with self.text.open("rb") as file:
            file.seek(self.start.byte)
            for row in range(self.start.row, self.end.row):
                line, first, second = file.readline()[:-1].decode().split("\t")
                document = self.documents_before + int(first) if is_text else 0
                texts = (second,) if is_text else (first, second)
                yield CleanRecord(int(line), document, texts, reasons.get(row))

    def _reasons(self) -> dict[int, str]:
        """Row -> why it is dropped."""
        found: dict[int, str] = {}
        if self.duplicates is not None:
            with np.load(self.duplicates.path, allow_pickle=False) as positions:
                for reason in positions.files:
                    rows = rows_of(positions[reason], self.split)
                    lower, upper = np.searchsorted(rows, [self.start.row, self.end.row])
                    found.update(dict.fromkeys(rows[lower:upper].tolist(), reason))
        return found


def slice_texts(groups: Sequence[CleanedGroup], split: Split) -> Iterator[TextSlice]:
    """All slices of one split, in corpus order."""
    before: Counter[str] = Counter()
    for task, result, duplicates in groups:
        subset, key = task.group.subset, task_key(task)
        for start, end in pairwise(result.offsets[split]):
            yield TextSlice(
                subset=subset,
                key=key,
                file=task.group.files[0],
                text=task.path(split),
                split=split,
                start=start,
                end=end,
                documents_before=before[subset.folder],
                duplicates=duplicates,
            )
        before[subset.folder] += result.documents


def group_slices(slices: Iterable[TextSlice], size: int) -> list[tuple[TextSlice, ...]]:
    """Consecutive slices of the same subset, grouped to about `size` bytes."""
    groups: list[list[TextSlice]] = []
    held = 0
    for part in slices:
        follows = groups and groups[-1][-1].subset.folder == part.subset.folder
        if follows and held + part.bytes <= size:
            groups[-1].append(part)
            held += part.bytes
        else:
            groups.append([part])
            held = part.bytes
    return [tuple(group) for group in groups]


SUFFIXES = (CLEANING, ENCODING) = (".cleaning.jsonl.gz", ".encoding.jsonl.gz")
"""Suffixes of the files of lines that were dropped in cleaning, and after it."""


class DroppedLines:
    """A file of dropped lines (`isoglot prepare --dropped`), in a `with` block; a path may be None.

        {"source": ..., "language": ..., "file": ..., "line": ..., "reason": ..., "text": [...]}

    Gzipped JSON lines, one file for each task, the same bytes for any number of workers. Lines
    dropped before cleaning are as they were read, the others as cleaned.
    """

    def __init__(self, path: Path | None, subset: Subset) -> None:
        self._path = path
        self._head = {"source": subset.source, "language": subset.language}
        self._file: gzip.GzipFile | None = None
        self._closing = ExitStack()

    def __enter__(self) -> DroppedLines:
        """Removes the lines of an earlier attempt."""
        if self._path is not None:
            with write_errors(self._path):
                self._path.unlink(missing_ok=True)
        return self

    def __exit__(self, *error: Any) -> None:
        if self._path is not None:
            with write_errors(self._path):
                self._closing.__exit__(*error)

    def write(self, file: Path, line: int, reason: str, texts: Sequence[str]) -> None:
        """Adds a line; the file is created with the first."""
        if self._path is None:
            return
        row = {**self._head, "file": str(file), "line": line, "reason": reason, "text": [*texts]}
        with write_errors(self._path):
            if self._file is None:
                partial = self._closing.enter_context(replace_file(self._path))
                stream = self._closing.enter_context(partial.open("wb"))
                # no name and no date: equal lines give equal bytes
                compressed = gzip.GzipFile("", "wb", compresslevel=3, fileobj=stream, mtime=0)
                self._file = self._closing.enter_context(compressed)
            text = json.dumps(row, ensure_ascii=False) + "\n"
            self._file.write(text.encode("utf-8", "replace"))


def remove_others(paths: Iterable[Path]) -> None:
    """Removes from the folders of these files those of an earlier run with other settings."""
    wanted = set(paths)
    for folder in {path.parent for path in wanted}:
        for path in folder.glob("*"):  # there is no folder where nothing was dropped
            if path.name.endswith(SUFFIXES) and path not in wanted:
                with write_errors(path):
                    path.unlink()
