"""Words to tokens, many sentences at a time.

As in SimAlign and awesome-align every word is tokenized alone, as after a space, so that each token
is of one word. Words are remembered between blocks of sentences, and tokenized once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.corpus.tokenization.vocabulary import max_characters
from isoglot.evaluation.tokenize_texts import tokenize_words

if TYPE_CHECKING:
    from collections.abc import Sequence

from isoglot.types import LongArray

_MAX_WORDS = 1_000_000
"""Words that are remembered; beyond it all are forgotten."""
_SPARE_WORDS = 4
"""Words of a sentence for each token that the model reads: some have no token."""


@dataclass(frozen=True, slots=True)
class SentenceTokens:
    """The tokens of some sentences, one after the other."""

    ids: LongArray
    words: LongArray
    """The index of each token's word in its sentence."""
    lengths: LongArray
    """Tokens of each sentence."""
    is_cut: list[bool]
    """Whether a sentence has more tokens than these."""


class WordTokens:
    """Tokenizes words, and remembers their tokens."""

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        """`max_length` is the most tokens that a sentence may have."""
        self._tokenizer, self._max_length = tokenizer, max_length
        self._max_characters = max_characters(tokenizer, max_length)
        self._ids: dict[str, list[int]] = {}

    def encode(self, sentences: Sequence[Sequence[str]]) -> SentenceTokens:
        """The tokens of sentences given in words, cut at `max_length`."""
        limit = _SPARE_WORDS * self._max_length
        shortened = [words[:limit] for words in sentences]
        self._learn(chain.from_iterable(shortened))
        known = self._ids
        of_words = [[known[word] for word in words] for words in shortened]
        counts = [np.fromiter(map(len, own), np.int64, len(own)) for own in of_words]
        whole = np.array([own.sum() for own in counts], np.int64)
        lengths = np.minimum(whole, self._max_length)
        total = int(whole.sum())
        tokens = chain.from_iterable(chain.from_iterable(of_words))
        ids = np.fromiter(tokens, np.int64, total)
        words = np.concatenate(
            [np.repeat(np.arange(len(own)), own) for own in counts] or [np.zeros(0, np.int64)]
        )
        kept = places_in(whole) < self._max_length
        is_cut = [
            more > self._max_length or len(all_words) > limit
            for more, all_words in zip(whole.tolist(), sentences, strict=True)
        ]
        return SentenceTokens(ids[kept], words[kept], lengths, is_cut)

    def _learn(self, words: Any) -> None:
        wanted = dict.fromkeys(words)
        new = [word for word in wanted if word not in self._ids]
        if len(self._ids) + len(new) > _MAX_WORDS:
            self._ids.clear()
            new = list(wanted)
        if new:
            texts = [word[: self._max_characters] for word in new]
            self._ids.update(zip(new, tokenize_words(self._tokenizer, texts), strict=True))


def places_in(lengths: LongArray) -> LongArray:
    """0, 1, 2, ... within each of several runs of these lengths, one after the other."""
    starts = np.cumsum(lengths) - lengths
    found: LongArray = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
    return found
