"""Counted words of sentences: what every tokenizer is trained on.

Words are what single spaces separate. Neither SentencePiece's vocabularies nor a list of words
depend on more of a text than its words and their numbers. Files have a line for each distinct word:
the word, a tab, its number.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_MAX_WORDS = 10_000_000
"""Distinct words held while counting; beyond it the rarest half is forgotten."""


def count_words(sentences: Iterable[str]) -> Counter[str]:
    """The words of normalized sentences."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split(" "))
        if len(counts) > _MAX_WORDS:
            counts = Counter(dict(most_frequent(counts, _MAX_WORDS // 2)))
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
            counts = Counter(dict(most_frequent(counts, _MAX_WORDS // 2)))
    return counts


def most_frequent(counts: Mapping[str, int], number: int) -> list[tuple[str, int]]:
    """The most frequent words; of equally frequent ones the first in the order of characters."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number]
