"""Decontamination: sentences with the letters and digits of a test sentence are dropped.

Reads the pairs of all tests; counts dropped sentences by source and language.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.alignment.sentences import essence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from benchmarks.alignment.sources import Document, Pair


class EvaluationSentences:
    """The sentences of the tests, and how often they were found in training text."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self.known = {essence(text) for pair in pairs for text in pair} - {""}
        self.dropped: Counter[str] = Counter()

    def filter(self, sentences: Document, place: str) -> Document:
        """A document without test sentences."""
        kept = [text for text in sentences if essence(text) not in self.known]
        self.dropped[place] += len(sentences) - len(kept)
        return kept

    def filter_pairs(self, pairs: list[Pair], place: str) -> list[Pair]:
        """Pairs without a test sentence on either side."""
        kept = [pair for pair in pairs if not self.known & {essence(text) for text in pair}]
        self.dropped[place] += len(pairs) - len(kept)
        return kept

    def check(self, files: Iterable[Path]) -> None:
        """Read written files again, and raise if a test sentence is in them."""
        for file in files:
            for line in file.read_text(encoding="utf-8").splitlines():
                for text in line.split("\t"):
                    assert essence(text) not in self.known, f"{file}: a test's sentence: {text}"
