"""The tokens that text files use, the words in them that a tokenizer splits, tokens per word."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.reading.files import read_lines
from isoglot.corpus.reading.reader import Skipped
from isoglot.corpus.tokenization.encode import count_words
from isoglot.corpus.tokenization.hf_tokenizer import flatten_ids
from isoglot.errors import ModelError
from isoglot.models.transplant.tokens import SurfaceForm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from isoglot.models.transplant.tokens import TokenizerTokens
    from isoglot.types import LongArray

_LINES_PER_BATCH = 10_000


def count_tokens(tokens: TokenizerTokens, files: Sequence[Path]) -> LongArray:
    """How often each token occurs in these files, which have a sentence a line."""
    counts = np.zeros(tokens.vocabulary.size, np.int64)
    for file in files:
        lines = read_sentences(file)
        while batch := list(islice(lines, _LINES_PER_BATCH)):
            ids, _ = flatten_ids(tokens.encode(batch))
            counts += np.bincount(ids, minlength=len(counts))
    return counts


def most_split_words(tokens: TokenizerTokens, files: Sequence[Path], number: int) -> list[str]:
    """The words of these files that would save most tokens as tokens of their own, best first.

    Words that cannot be added (`new_words`) are not among them.
    """
    return [saving.word for saving in word_savings(tokens, files)[:number]]


@dataclass(frozen=True, slots=True)
class WordSaving:
    """A word that could be a token of its own."""

    word: str
    count: int
    """How often it occurs."""
    saved: int
    """Tokens that it would save: its count times the number of its subwords less one. A word that
    is unknown, or has an unknown part, counts as if it had one subword more."""


def word_savings(tokens: TokenizerTokens, files: Sequence[Path]) -> list[WordSaving]:
    """Every word of these files that is split or unknown, and can be added; best first."""
    counts: Counter[str] = Counter()
    for file in files:
        for line in read_sentences(file):
            counts.update(
                word for raw in line.split() if (word := _strip_punctuation(raw)).isalpha()
            )
    words, _ = new_words(tokens, counts)
    found = []
    for word, ids in zip(words, _split(tokens, words), strict=True):
        spared = len(ids) - 1 + (tokens.unknown in ids)
        if spared:
            found.append(WordSaving(word, counts[word], counts[word] * spared))
    return sorted(found, key=lambda saving: -saving.saved)


def new_words(tokens: TokenizerTokens, words: Iterable[str]) -> tuple[list[str], Counter[str]]:
    """The words that can become tokens, each once, and how many others there are by reason."""
    given = list(dict.fromkeys(words))
    new, others = [], Counter[str]()
    for word, ids in zip(given, _split(tokens, given), strict=True):
        if len(ids) == 1 and ids[0] != tokens.unknown:
            others["one token already"] += 1
        elif word in tokens.ids:
            others["spelled like a token inside words, whose vector they would share"] += 1
        else:
            new.append(word)
    return new, others


def _split(tokens: TokenizerTokens, words: Sequence[str]) -> list[list[int]]:
    """The ids of whole words."""
    return tokens.encode([tokens.as_text(SurfaceForm(word, starts_word=True)) for word in words])


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSplits:
    """How many tokens the words of a text are split into, before and after growing."""

    file: str
    words: int
    before: int
    """Tokens before."""
    after: int
    """Tokens after."""


def compare_splits(
    before: TokenizerTokens, after: TokenizerTokens, files: Sequence[Path]
) -> list[WordSplits]:
    """The words and tokens of each file under two tokenizers."""
    found = []
    for file in files:
        words = old = new = 0
        lines = read_sentences(file)
        while batch := list(islice(lines, _LINES_PER_BATCH)):
            words += count_words(batch)
            old += sum(map(len, before.encode(batch)))
            new += sum(map(len, after.encode(batch)))
        found.append(WordSplits(file=str(file), words=words, before=old, after=new))
    return found


def read_words(file: Path) -> list[str]:
    """The words of a file with one on each line."""
    return list(read_sentences(file))


def read_sentences(file: Path) -> Iterator[str]:
    """The lines of a text file, normalized as `prepare` normalizes them."""
    is_empty = True
    for line in read_lines(file):
        if not isinstance(line, Skipped) and (text := normalize_text(line)):
            is_empty = False
            yield text
    if is_empty:
        raise ModelError(f"{file} holds no text. Name files with a sentence on each line.")


def _strip_punctuation(word: str) -> str:
    """The word without the punctuation around it."""
    inside = [place for place, letter in enumerate(word) if letter.isalpha()]
    return word[inside[0] : inside[-1] + 1] if inside else ""
