"""The words of a line that bits per character are computed for, and their tokens.

    line --words--> words --choose--> chosen words --find_hidden--> hidden units in token windows

Words and their choice depend on the text alone, so every model codes the same words. A word is the
text between spaces; in scripts that write no spaces between words, a run of their characters is cut
into pieces of three graphemes. Lines are in Unicode's form C, with single spaces.

A token belongs to the words that its characters are in; a token of spaces alone (SentencePiece's
`▁`) belongs to the word after it. Words that share a token are hidden together, as one unit, and
all their characters count. This is rare where words have spaces between them.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.batching.counter_rng import key_of, uniform
from isoglot.corpus.tokenization.vocabulary import NO_SPACES
from isoglot.types import BoolArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HIDDEN_SHARE = 0.15
"""Share of the words of a line that are chosen."""
_RUN_GRAPHEMES = 3
"""Graphemes of a word in scripts that write no spaces between words."""
_MAX_WORD = 64
"""Longer words (addresses, base64) are never chosen."""
_MAX_CHARACTERS = 1000
"""Longer lines are cut between words, and each part is encoded alone."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a line that is encoded alone: the line itself, unless it is very long."""

    text: str
    lengths: LongArray
    """Characters of each word; spaces are in none."""
    chosen: BoolArray
    """Whether a word is chosen."""


def text_parts(line: str, seed: int) -> list[TextPart]:
    """The parts of a normalized line with their chosen words; none for an empty line."""
    parts: list[tuple[list[str], list[int]]] = []
    size = _MAX_CHARACTERS
    for between_spaces in line.split(" "):
        if not between_spaces:
            continue
        words = split_word(between_spaces)
        if size + len(between_spaces) > _MAX_CHARACTERS:
            parts.append(([], []))
            size = 0
        size += len(between_spaces) + 1
        parts[-1][0].append(between_spaces)
        parts[-1][1].extend(map(len, words))
    lengths = np.array([length for _, own in parts for length in own], np.int64)
    chosen = choose(line, lengths, seed)
    ends = np.cumsum([len(own) for _, own in parts])
    return [
        TextPart(" ".join(texts), lengths[end - len(own) : end], chosen[end - len(own) : end])
        for (texts, own), end in zip(parts, ends.tolist(), strict=True)
    ]


def split_word(text: str) -> list[str]:
    """The words of a text without spaces: one, or pieces of three graphemes without spaces."""
    if NO_SPACES.search(text) is None:
        return [text]
    words: list[str] = []
    graphemes = 0
    was_alone = None
    for character in text:
        if words and unicodedata.category(character).startswith("M"):
            words[-1] += character
            continue
        is_alone = NO_SPACES.match(character) is not None
        if is_alone != was_alone or (is_alone and graphemes == _RUN_GRAPHEMES):
            words.append("")
            graphemes = 0
        words[-1] += character
        graphemes += 1
        was_alone = is_alone
    return words


def choose(line: str, lengths: LongArray, seed: int) -> BoolArray:
    """Which words are chosen: by a hash of seed, line and number; the one nearest if none is."""
    drawn = uniform(key_of(seed, "hidden words", line), np.arange(len(lengths)))
    drawn[lengths > _MAX_WORD] = np.inf
    chosen: BoolArray = drawn < HIDDEN_SHARE
    if len(drawn) and not chosen.any() and np.isfinite(drawn).any():
        chosen[drawn.argmin()] = True
    return chosen


@dataclass(frozen=True, slots=True)
class HiddenUnit:
    """A chosen word, or chosen words and neighbors that share tokens: what is hidden as one."""

    start: int
    """Its first token in the window."""
    end: int
    """The token after its last."""


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens that are encoded together, and the units of them that are hidden."""

    ids: list[int]
    units: list[HiddenUnit]


@dataclass(frozen=True, slots=True)
class HiddenPart:
    """The tokens of a part of a line."""

    windows: list[Window]
    """More than one if the part is longer than the model's positions."""
    characters: int
    """Characters of all hidden units."""
    uncoded: int
    """Those of them that no known token covers."""


def find_hidden(
    part: TextPart, text: str, encoded: tuple[Sequence[int], Any], unknown: int | None, limit: int
) -> HiddenPart:
    """The tokens of the hidden units of a part.

    Args:
        part: the words.
        text: what was tokenized: the part's text, with further spaces if it is pretokenized.
        encoded: token ids, and for each token the characters [start, end) of `text` it covers.
        unknown: the id of the unknown token, which codes no character.
        limit: most tokens of a window; a unit with more is not coded.
    """
    ids = np.asarray(encoded[0], np.int64)
    # places among the characters that are no spaces, which are the same in text and words
    places = np.concatenate([[0], np.cumsum([character != " " for character in text])])
    covers = places[np.asarray(encoded[1], np.int64).reshape(-1, 2)]
    word_of = np.repeat(np.arange(len(part.lengths)), part.lengths)
    assert len(word_of) == places[-1], "pretokenization inserts spaces only"
    unit_of_word = _join_words(covers, word_of, len(part.lengths))
    hidden = np.zeros(unit_of_word[-1] + 1, np.bool_)
    hidden[unit_of_word[part.chosen]] = True
    is_hidden = hidden[unit_of_word[word_of]]
    # a token of spaces belongs to the word after it
    of_token = np.append(unit_of_word[word_of], -1)[covers[:, 0]]
    windows, lost = _windows(ids, of_token, hidden, limit)
    is_coded = np.zeros(len(word_of) + 1, np.int64)
    for token, (start, end) in zip(ids.tolist(), covers.tolist(), strict=True):
        if token != unknown:
            is_coded[start] += 1
            is_coded[end] -= 1
    uncoded = (np.cumsum(is_coded)[:-1] == 0) | np.isin(unit_of_word[word_of], lost)
    return HiddenPart(windows, int(is_hidden.sum()), int((is_hidden & uncoded).sum()))


def _join_words(covers: LongArray, word_of: LongArray, number: int) -> LongArray:
    """The unit of each word: words that share a token are of one unit."""
    joined = np.zeros(number, np.bool_)
    full = covers[covers[:, 1] > covers[:, 0]]
    first, last = word_of[full[:, 0]], word_of[full[:, 1] - 1]
    for start, end in zip(first[first < last].tolist(), last[first < last].tolist(), strict=True):
        joined[start + 1 : end + 1] = True
    return np.cumsum(~joined) - 1


def _windows(
    ids: LongArray, of_token: LongArray, hidden: BoolArray, limit: int
) -> tuple[list[Window], list[int]]:
    """Windows of at most `limit` tokens, cut between units; and the units with more tokens."""
    runs = list(_runs(of_token))
    lost = [unit for unit, start, end in runs if end - start > limit]
    kept = [(unit, start, end) for unit, start, end in runs if end - start <= limit]
    total = sum(end - start for _, start, end in kept)
    size = -(-total // max(1, -(-total // limit)))  # windows of about equal length
    windows: list[Window] = []
    for unit, start, end in kept:
        if (
            not windows
            or len(windows[-1].ids) >= size
            or len(windows[-1].ids) + end - start > limit
        ):
            windows.append(Window([], []))
        begin = len(windows[-1].ids)
        windows[-1].ids.extend(ids[start:end].tolist())
        if unit >= 0 and hidden[unit]:
            windows[-1].units.append(HiddenUnit(begin, begin + end - start))
    return [window for window in windows if window.units], lost


def _runs(of_token: LongArray) -> Iterator[tuple[int, int, int]]:
    """(unit, start, end) of consecutive tokens of one unit."""
    starts = np.flatnonzero(np.diff(of_token, prepend=-2)).tolist()
    for start, end in pairwise([*starts, len(of_token)]):
        yield int(of_token[start]), start, end
