"""How well a tokenizer fits a language: counted while its text is encoded.

Counts are integers, so that their sums are the same in any order. A word is what stands between
spaces; in scripts that write no spaces between words, every character counts as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.tokenizer import NO_SPACE_RANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isoglot.types import BoolArray, IntArray

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What the text of a language became."""

    words: int = 0
    tokens: int = 0
    unknown: int = 0
    """Tokens that stand for something the vocabulary does not have."""
    spelled: int = 0
    """Tokens that are single bytes of a character without a piece of its own."""

    def __add__(self, other: Fit) -> Fit:
        """The counts of both."""
        return Fit(
            words=self.words + other.words,
            tokens=self.tokens + other.tokens,
            unknown=self.unknown + other.unknown,
            spelled=self.spelled + other.spelled,
        )

    @property
    def coverage(self) -> float:
        """Share of the tokens that are pieces in their own right: not unknown, not bytes."""
        return 1 - (self.unknown + self.spelled) / max(self.tokens, 1)

    @property
    def unknown_rate(self) -> float:
        """Share of the tokens that are unknown."""
        return self.unknown / max(self.tokens, 1)

    @property
    def tokens_per_word(self) -> float:
        """Tokens that a word becomes, on average."""
        return self.tokens / max(self.words, 1)


def byte_ids(pieces: Mapping[str, int]) -> tuple[int, ...]:
    """The ids of the pieces that are single bytes."""
    return tuple(sorted(number for piece, number in pieces.items() if _BYTE.fullmatch(piece)))


def fit_of(texts: Sequence[str], ids: IntArray, unknown: int | None, spelled: Iterable[int]) -> Fit:
    """The counts of some texts and their ids."""
    counts = np.bincount(ids) if len(ids) else np.zeros(1, np.int64)
    return Fit(
        words=words_of(texts),
        tokens=len(ids),
        unknown=0 if unknown is None or unknown >= len(counts) else int(counts[unknown]),
        spelled=sum(int(counts[number]) for number in spelled if number < len(counts)),
    )


def words_of(texts: Sequence[str]) -> int:
    """The number of words of normalised texts."""
    characters = np.frombuffer("\n".join(texts).encode("utf-32-le"), np.uint32)
    if not len(characters):
        return 0
    space: BoolArray = (characters == ord(" ")) | (characters == ord("\n"))
    alone = np.zeros(len(characters), np.bool_)
    for first, last in NO_SPACE_RANGES:
        alone |= (characters >= first) & (characters <= last)
    starts = ~space
    # a word goes on where the character before it is neither a space nor a word of its own
    starts[1:] &= space[:-1] | alone[:-1] | alone[1:]
    return int(starts.sum())
