"""Encoding by words: every distinct word is encoded once, and then its ids are looked up.

    texts --split at spaces--> words --table--> numbers --> ids
                                 '--new words--> encoded --^

Where a tokenizer splits text at spaces before anything else, the ids of a text are those of its
words. A text with other than single spaces between its words is encoded by the tokenizers library,
and so is one with a word that may make a difference to its neighbors, as an encoder decides. The
first texts after `compare_next` are encoded by both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.tokenization.word_table import WordTable, codes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
    from isoglot.corpus.tokenization.word_table import Words
    from isoglot.types import BoolArray, IntArray

_COMPARED = 100
"""Texts that are encoded by the library, too."""


class WordEncoder(ABC):
    """Encodes texts to the ids of the tokenizers library, several times faster."""

    def __init__(self, library: HFEncoder, *, marks_first: bool = False) -> None:
        """`marks_first`: whether a word that begins a text may have other ids than later."""
        self._library = library
        self._table = WordTable(marks_first=marks_first)
        self._agrees: bool | None = None

    @abstractmethod
    def encode_words(self, words: Words) -> tuple[IntArray, IntArray, BoolArray]:
        """The ids of all words, the number of each, and which leave their texts to the library."""

    def compare_next(self) -> None:
        """Compares the next texts with the library, which encodes all after them if they differ."""
        self._agrees = None

    def encode(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """The ids of all texts, concatenated, and the number of ids of each text."""
        if self._agrees is None:
            some = texts[:_COMPARED]
            pairs = zip(self.encode_by_words(some), self._library.encode(some), strict=True)
            self._agrees = all(np.array_equal(own, theirs) for own, theirs in pairs)
        return self.encode_by_words(texts) if self._agrees else self._library.encode(texts)

    def encode_by_words(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """The same without comparison."""
        numbers, sizes, new = self._table.find(*codes_of(texts))
        if len(new.lengths):
            self._table.add(*self.encode_words(new))
        found, counts = self._table.ids_of(numbers, sizes)
        left = counts < 0
        if not left.any():
            return found, counts
        rest, counts[left] = self._library.encode(
            [texts[number] for number in np.flatnonzero(left).tolist()]
        )
        return merge_ids(found, rest, left, counts), counts


def merge_ids(ids: IntArray, others: IntArray, is_other: BoolArray, counts: IntArray) -> IntArray:
    """The ids of all texts, of which `others` are those of some; `counts` are of all."""
    merged, chosen = np.empty(int(counts.sum()), np.int32), np.repeat(is_other, counts)
    merged[~chosen], merged[chosen] = ids, others
    return merged
