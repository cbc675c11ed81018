"""Token alignment: the tokens of a text in two tokenizers, matched by character offsets.

Reads the ids of a sequence in the corpus's tokenizer; gives the ids of its text in another one (a
teacher's), and which tokens of both begin the same words. A corpus holds ids and no text, so ids
are decoded, sentence by sentence, and encoded again to learn their offsets. A sentence whose ids
change on the way (the second half of one that was cut) has no offsets and no words.

`shared_tokens` matches the vocabularies: tokens with the same spelling, word markers aside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.corpus.tokenization.vocabulary import derive_vocabulary, open_tokenizer
from isoglot.errors import RecipeError
from isoglot.models.transplant.matching import TokenIndex
from isoglot.models.transplant.tokens import TokenizerTokens
from isoglot.types import IntArray

if TYPE_CHECKING:
    from isoglot.types import LongArray, Sequence, Vocabulary

Span = tuple[int, int]
"""A token's first character, and the one after its last, without spaces around it."""

_WORD = re.compile(r"\w+")
_NOWHERE: Span = (-1, -1)


@dataclass(frozen=True, slots=True)
class TokenAlignment:
    """The tokens of a text in two tokenizers."""

    text: str
    first: list[Span]
    """A span for each token of the sequence; (-1, -1) for special tokens and unknown offsets."""
    first_possible: list[Span]
    """The same, but the whole sentence where offsets are unknown."""
    second: list[Span]
    second_ids: IntArray
    """Without special tokens."""

    def word_starts(self) -> list[tuple[int, int]]:
        """(first token, first token) of every word that begins a token in both."""
        mine, theirs = _by_start(self.first), _by_start(self.second)
        starts = (word.start() for word in _WORD.finditer(self.text))
        return [(mine[at], theirs[at]) for at in starts if at in mine and at in theirs]

    def single_token_words(self) -> list[tuple[int, int]]:
        """(token, token) of every word that is one token in both."""
        mine, theirs = ({span: i for i, span in enumerate(of)} for of in (self.first, self.second))
        spans = (word.span() for word in _WORD.finditer(self.text))
        return [(mine[span], theirs[span]) for span in spans if span in mine and span in theirs]

    def overlapping(self, tokens: list[int]) -> list[int]:
        """The second's tokens that may share a character with these of the first."""
        taken = np.zeros(len(self.text) + 1, np.bool_)
        for token in tokens:
            start, stop = self.first_possible[token]
            taken[start:stop] = True
        return [i for i, (start, stop) in enumerate(self.second) if taken[start:stop].any()]


@dataclass(frozen=True, slots=True)
class TokenizerPair:
    """The corpus's tokenizer and another one, by their folders, so that it can be pickled."""

    corpus: str
    other: str

    def align(self, sequence: Sequence, vocabulary: Vocabulary) -> TokenAlignment:
        """The alignment of a sequence's text before masking."""
        mine, theirs = _open_cached(self.corpus), _open_cached(self.other)
        ids = sequence.original()
        ordinary = ~vocabulary.is_special[ids]
        places = [
            np.flatnonzero(ordinary & (sequence.sentences == number))
            for number in np.unique(sequence.sentences)
        ]
        pieces = [ids[at].tolist() for at in places]
        texts = mine.decode_batch(pieces, skip_special_tokens=False)
        first, possible, at = [_NOWHERE] * len(ids), [(0, 0)] * len(ids), 0
        for text, inside, expected, again in zip(
            texts, places, pieces, mine.encode_batch(texts, add_special_tokens=False), strict=True
        ):
            if again.ids == expected:
                for place, span in zip(inside, _stripped(again.offsets, text), strict=True):
                    first[place] = possible[place] = (span[0] + at, span[1] + at)
            else:
                for place in inside:
                    possible[place] = (at, at + len(text))
            at += len(text) + 1
        whole = " ".join(texts)
        encoded = theirs.encode(whole, add_special_tokens=False)
        return TokenAlignment(
            text=whole,
            first=first,
            first_possible=possible,
            second=_stripped(encoded.offsets, whole),
            second_ids=np.array(encoded.ids, np.int32),
        )

    def vocabulary(self) -> Vocabulary:
        """The other tokenizer's special tokens."""
        return _vocabulary(self.other)


@cache
def _open_cached(folder: str) -> Any:
    """The tokenizer of a folder, cached; text that spells a special token is ordinary text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(open_tokenizer(Path(folder)).backend_tokenizer.to_str())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    return tokenizer


@cache
def _vocabulary(folder: str) -> Vocabulary:
    return derive_vocabulary(open_tokenizer(Path(folder)), Path(folder))


def _stripped(offsets: list[Span], text: str) -> list[Span]:
    """Offsets without the space before a word, which many tokenizers include."""
    stripped = []
    for start, stop in offsets:
        inside = text[start:stop]
        left = start + len(inside) - len(inside.lstrip())
        stripped.append((left, max(left, start + len(inside.rstrip()))))
    return stripped


def _by_start(spans: list[Span]) -> dict[int, int]:
    """The token that begins at each character; of several, the first that is not empty."""
    found: dict[int, int] = {}
    for index, (start, stop) in enumerate(spans):
        if stop > start:
            found.setdefault(start, index)
    return found


def shared_tokens(first: Path, second: Path) -> tuple[LongArray, LongArray]:
    """The ids of the shared tokens in the first tokenizer and, in the same order, in the second."""
    one, other = TokenizerTokens.open(first), TokenizerTokens.open(second)
    lookup = TokenIndex(other)
    found: dict[int, int] = {}
    for index, token in one.by_id:
        if index not in one.special:
            hit = lookup.find_token(token, one.surface(token))
            if hit is not None and hit.kind in ("exact", "marker"):
                found.setdefault(hit.id, index)
    if not found:
        raise RecipeError(
            f"objectives.distill.match: logits needs tokens that {first} and {second} share, "
            "and they share none. Set match: word_states instead."
        )
    return np.array(list(found.values()), np.int64), np.array(list(found), np.int64)
