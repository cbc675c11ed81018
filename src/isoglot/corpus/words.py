"""A vocabulary of whole words, as in the models before subwords: the most frequent of the sample.

What is not among them is unknown. A word carries the mark of the space before it, as SentencePiece
writes it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from isoglot.corpus.clean import SPACE_MARK
from isoglot.corpus.fast import SPECIAL

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_HELD = 10_000_000
"""Distinct words held while counting; beyond it the rarest are forgotten."""


def word_model(sentences: Iterable[str], size: int) -> Any:
    """The words of normalised sentences as a model of the tokenizers library.

    `size` is the number of ids, special tokens (`<mask>` too) included.
    """
    from tokenizers.models import WordLevel

    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split(" "))
        if len(counts) > _MOST_HELD:
            counts = Counter(dict(_frequent(counts, _MOST_HELD // 2)))
    words = [word for word, _ in _frequent(counts, size - len(SPECIAL) - 1)]
    vocabulary = {word: number for number, word in enumerate(SPECIAL)}
    vocabulary |= {f"{SPACE_MARK}{word}": number for number, word in enumerate(words, len(SPECIAL))}
    return WordLevel(vocabulary, unk_token=SPECIAL[3])


def _frequent(counts: Counter[str], number: int) -> list[tuple[str, int]]:
    """The most frequent words; of equally frequent ones the first in the order of characters."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number]
