"""The tokens that text files use, and the words in them that a tokenizer splits."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.reading.files import read_lines
from isoglot.corpus.reading.reader import Skipped
from isoglot.corpus.tokenization.hf_tokenizer import flatten_ids
from isoglot.errors import ModelError
from isoglot.models.transplant.tokens import SurfaceForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.models.transplant.tokens import TokenizerTokens
    from isoglot.types import LongArray

_LINES_PER_BATCH = 10_000


def count_tokens(tokens: TokenizerTokens, files: Sequence[Path]) -> LongArray:
    """How often each token occurs in these files, which have a sentence a line."""
    counts = np.zeros(tokens.vocabulary.size, np.int64)
    for file in files:
        before = counts.sum()
        lines = _sentences(file)
        while batch := list(islice(lines, _LINES_PER_BATCH)):
            ids, _ = flatten_ids(tokens.encode(batch))
            counts += np.bincount(ids, minlength=len(counts))
        if counts.sum() == before:  # its tokens would be dropped unnoticed
            raise ModelError(f"{file} holds no text. Name files with a sentence on each line.")
    return counts


def most_split_words(tokens: TokenizerTokens, files: Sequence[Path], number: int) -> list[str]:
    """The words of these files that would save most tokens as tokens of their own, best first.

    A word saves its count times the number of its subwords less one.
    """
    counts: Counter[str] = Counter()
    for file in files:
        for line in _sentences(file):
            counts.update(
                word for raw in line.split() if (word := _strip_punctuation(raw)).isalpha()
            )
    words = list(counts)
    split = tokens.encode([tokens.as_text(SurfaceForm(word, starts_word=True)) for word in words])
    saved = {word: counts[word] * (len(ids) - 1) for word, ids in zip(words, split, strict=True)}
    useful = [word for word in words if saved[word] > 0]
    return sorted(useful, key=lambda word: -saved[word])[:number]


def read_words(file: Path) -> list[str]:
    """The words of a file with one on each line."""
    return list(_sentences(file))


def _sentences(file: Path) -> Iterator[str]:
    for line in read_lines(file):
        if not isinstance(line, Skipped) and (text := normalize_text(line)):
            yield text


def _strip_punctuation(word: str) -> str:
    """The word without the punctuation around it."""
    inside = [place for place, letter in enumerate(word) if letter.isalpha()]
    return word[inside[0] : inside[-1] + 1] if inside else ""
