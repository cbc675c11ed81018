"""Counted words of sentences: what every tokenizer is trained on.

Words are what single spaces separate. Neither SentencePiece's vocabularies nor a list of words
depend on more of a text than its words and their numbers. Files have a line for each distinct word:
the word, a tab, its number.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_MAX_WORDS = 10_000_000
"""Distinct words held while counting; of more, a half is drawn that stands for all."""


def count_words(sentences: Iterable[str]) -> Counter[str]:
    """The words of normalized sentences."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split(" "))
        if len(counts) > _MAX_WORDS:
            counts = _thinned(counts)
    return counts


def counted_lines(lines: Iterable[tuple[bytes, int]]) -> bytes:
    """The content of a file of the words of encoded sentences, each sentence so many times."""
    by_times: dict[int, list[bytes]] = {}
    for line, times in lines:
        by_times.setdefault(times, []).append(line)
    counts: Counter[bytes] = Counter()
    for times, found in by_times.items():
        of_these = Counter(b" ".join(found).split(b" "))
        counts.update({word: times * number for word, number in of_these.items()})
    return b"".join(b"%b\t%d\n" % item for item in counts.items())


def read_words(files: Sequence[Path]) -> Counter[str]:
    """The words of all files together."""
    counts: Counter[str] = Counter()
    for path in files:
        fields = path.read_text("utf-8").replace("\n", "\t").split("\t")
        words, numbers = fields[:-1:2], map(int, fields[1::2])
        for word, number in zip(words, numbers, strict=True):
            counts[word] += number
        if len(counts) > _MAX_WORDS:
            counts = _thinned(counts)
    return counts


def _thinned(counts: Counter[str]) -> Counter[str]:
    """At most half of `_MAX_WORDS` words: the frequent ones, and some of the others.

    To forget the rarest would be to forget languages without spaces, whose words are sentences. In
    priority sampling (Duffield, Lund & Thorup, 2007) a rare word is drawn with a chance that grows
    with its number, and counts for those that are not drawn: sums over many words stay as they are.
    """
    numbers = np.fromiter(counts.values(), np.int64, len(counts))
    draws = np.random.default_rng([*b"words", counts.total()]).random(len(counts))
    priorities = numbers / (1 - draws)
    place = len(counts) - _MAX_WORDS // 2 - 1  # of the highest one that is not drawn
    least = math.ceil(np.partition(priorities, place)[place])
    drawn = zip(counts, np.maximum(numbers, least).tolist(), priorities >= least, strict=True)
    return Counter({word: number for word, number, is_drawn in drawn if is_drawn})


def most_frequent(counts: Mapping[str, int], number: int) -> list[tuple[str, int]]:
    """The most frequent words; of equally frequent ones the first in the order of characters."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number]
