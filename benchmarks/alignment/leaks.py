"""Keeps the tests out of training: what has a test sentence's letters and digits is dropped.

Reads the pairs of all tests; counts what it drops, by source and language.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.alignment.sentences import essence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from benchmarks.alignment.sources import Document, Pair


class Forbidden:
    """The sentences that must not be trained on, and how often they were found."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self.known = {essence(text) for pair in pairs for text in pair} - {""}
        self.dropped: Counter[str] = Counter()

    def taken_out_of(self, sentences: Document, place: str) -> Document:
        """A document without the tests' sentences."""
        kept = [text for text in sentences if essence(text) not in self.known]
        self.dropped[place] += len(sentences) - len(kept)
        return kept

    def taken_out_of_pairs(self, pairs: list[Pair], place: str) -> list[Pair]:
        """Pairs of which neither side is a test's sentence."""
        kept = [pair for pair in pairs if not self.known & {essence(text) for text in pair}]
        self.dropped[place] += len(pairs) - len(kept)
        return kept

    def check(self, files: Iterable[Path]) -> None:
        """Read what was written once more: nothing of the tests may be in it."""
        for file in files:
            for line in file.read_text(encoding="utf-8").splitlines():
                for text in line.split("\t"):
                    assert essence(text) not in self.known, f"{file}: a test's sentence: {text}"
