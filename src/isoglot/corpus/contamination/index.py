"""The index of excluded lines: hashes of their letters, sorted, with the file each is from.

Lines are compared by their letters and digits alone, without case, so that spacing, punctuation
and tokenization do not hide a test sentence. Only the evaluation files are held in memory (12 bytes
a line, mapped), never the corpus.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isoglot.corpus.contamination.evaluation import texts_of
from isoglot.corpus.disk import writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.types import BoolArray

Words = npt.NDArray[np.uint64]
_NO_LETTERS = re.compile(r"[\W_]+")
_ASCII_NO_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalnum())


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherTask:
    """One evaluation file."""

    file: Path
    sha256: str
    shortest: int
    """Texts whose letters take fewer bytes are left out."""
    output: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """How many different texts a file gave."""

    texts: int


def letters_of(text: str) -> bytes:
    """What is left of a text when it is compared."""
    if text.isascii():
        return text.lower().encode().translate(None, _ASCII_NO_LETTERS)
    folded = unicodedata.normalize("NFKC", text).casefold().encode("utf-8", "replace")
    # most of what goes is ASCII, and goes many times faster from bytes
    return _NO_LETTERS.sub("", folded.translate(None, _ASCII_NO_LETTERS).decode()).encode()


def gather(task: GatherTask) -> Gathered:
    """Writes the hashes of all texts of an evaluation file."""
    found = {
        blake2b(letters, digest_size=8).digest()
        for letters in map(letters_of, texts_of(task.file))
        if len(letters) >= task.shortest
    }
    hashes = np.sort(np.frombuffer(b"".join(found), "<u8"))
    with writing(task.output):
        task.output.parent.mkdir(parents=True, exist_ok=True)
        np.save(task.output, hashes)
    return Gathered(texts=len(hashes))


def is_whole(task: GatherTask, gathered: Gathered) -> bool:
    """Are the hashes of a finished file still there?"""
    del gathered
    return task.output.is_file()


def write_index(tasks: Sequence[GatherTask], path: Path) -> None:
    """Joins the hashes of all files: two rows, the hashes in order and the number of the file."""
    hashes = [np.load(task.output) for task in tasks]
    owners = np.repeat(np.arange(len(tasks)), [len(part) for part in hashes])
    joined = np.concatenate([np.empty(0, np.uint64), *hashes])
    order = np.argsort(joined, kind="stable")
    with writing(path):
        np.save(path, np.stack([joined[order], owners[order].astype(np.uint64)]))


class Excluded:
    """The index, opened."""

    def __init__(self, path: Path | None) -> None:
        """No path: nothing is excluded."""
        self._path = path

    @cached_property
    def _index(self) -> npt.NDArray[np.uint64]:
        assert self._path is not None
        index: npt.NDArray[np.uint64] = np.load(self._path, mmap_mode="r")
        return index

    def find(self, records: Iterable[tuple[str, ...]]) -> list[tuple[int, ...]]:
        """For each record, the numbers of the files that have one of its texts."""
        records = list(records)
        if self._path is None or not records or not self._index.shape[1]:
            return [()] * len(records)
        sides = len(records[0])
        digests = bytearray()
        for texts in records:
            for text in texts:
                digests += blake2b(letters_of(text), digest_size=8).digest()
        asked = np.frombuffer(bytes(digests), "<u8")
        hashes = self._index[0]
        lower = np.searchsorted(hashes, asked)
        there: BoolArray = hashes[np.minimum(lower, len(hashes) - 1)] == asked
        found: list[tuple[int, ...]] = [()] * len(records)
        for place in np.flatnonzero(there).tolist():
            record = place // sides
            found[record] = tuple(
                sorted({*found[record], *self._files(asked[place], lower[place])})
            )
        return found

    def _files(self, hashed: np.uint64, lower: int) -> list[int]:
        upper = int(np.searchsorted(self._index[0], hashed, side="right"))
        return [int(file) for file in self._index[1, lower:upper]]
