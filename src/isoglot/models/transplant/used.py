"""What some text uses: how often each token, and the words that a tokenizer splits."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.clean import normalise
from isoglot.corpus.readers.base import Skipped
from isoglot.corpus.readers.files import read_lines
from isoglot.corpus.tokenizer import flatten
from isoglot.errors import ModelError
from isoglot.models.transplant.surface import Surface

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.models.transplant.tokens import Tokens
    from isoglot.types import LongArray

_LINES = 10_000


def token_counts(tokens: Tokens, files: Sequence[Path]) -> LongArray:
    """How often each token is in the text of these files, a sentence a line.

    Raises:
        ModelError: a file holds no text: what it was to keep would be lost unnoticed.
    """
    counts = np.zeros(tokens.vocabulary.size, np.int64)
    for file in files:
        before = counts.sum()
        lines = _sentences(file)
        while some := list(islice(lines, _LINES)):
            ids, _ = flatten(tokens.encode(some))
            counts += np.bincount(ids, minlength=len(counts))
        if counts.sum() == before:
            raise ModelError(f"{file} holds no text. Name files with a sentence on each line.")
    return counts


def split_words(tokens: Tokens, files: Sequence[Path], number: int) -> list[str]:
    """The words of these files that are worth a token of their own, most useful first.

    A word's worth is what it saves: its count times the pieces it is split into, less one.
    """
    counts: Counter[str] = Counter()
    for file in files:
        for line in _sentences(file):
            counts.update(word for raw in line.split() if (word := _bare(raw)).isalpha())
    words = list(counts)
    pieces = tokens.encode([tokens.as_text(Surface(word, starts=True)) for word in words])
    worth = {word: counts[word] * (len(ids) - 1) for word, ids in zip(words, pieces, strict=True)}
    useful = [word for word in words if worth[word] > 0]
    return sorted(useful, key=lambda word: -worth[word])[:number]


def read_words(file: Path) -> list[str]:
    """The words of a file with one on each line."""
    return list(_sentences(file))


def _sentences(file: Path) -> Iterator[str]:
    for line in read_lines(file):
        if not isinstance(line, Skipped) and (text := normalise(line)):
            yield text


def _bare(word: str) -> str:
    """The word without the punctuation around it."""
    inside = [place for place, letter in enumerate(word) if letter.isalpha()]
    return word[inside[0] : inside[-1] + 1] if inside else ""
