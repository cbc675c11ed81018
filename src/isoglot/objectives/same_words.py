"""The same text in two tokenizers: which tokens of one stand for the words of the other.

Reads the ids of a sequence in the corpus's tokenizer; gives the ids of its text in another one (a
teacher's), and where the words of the text begin in both, by character offsets. A corpus holds ids
and no text, so ids are decoded, sentence by sentence, and encoded again to learn their offsets; a
sentence that does not come back as it was (the rest of one that was cut in two) has no offsets, and
no words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.corpus.tokenizer import derive_vocabulary, open_tokenizer
from isoglot.types import IntArray

if TYPE_CHECKING:
    from isoglot.types import Sequence, Vocabulary

Span = tuple[int, int]
"""A token's first character, and the one after its last; spaces around it are not its own."""

_WORD = re.compile(r"\w+")
_NOWHERE: Span = (-1, -1)


@dataclass(frozen=True, slots=True)
class BothWays:
    """A text as one tokenizer splits it and as another does."""

    text: str
    first: list[Span]
    """One for each token of the sequence; special tokens and unreadable ones are nowhere."""
    somewhere: list[Span]
    """The same, but what is unreadable may be anywhere in its sentence."""
    second: list[Span]
    ids: IntArray
    """In the second tokenizer, without special tokens."""

    def words(self) -> list[tuple[int, int]]:
        """(first piece, first piece) of every word that begins a piece in both."""
        mine, theirs = _by_start(self.first), _by_start(self.second)
        starts = (word.start() for word in _WORD.finditer(self.text))
        return [(mine[at], theirs[at]) for at in starts if at in mine and at in theirs]

    def whole_words(self) -> list[tuple[int, int]]:
        """(piece, piece) of every word that is one piece in both."""
        mine, theirs = ({span: i for i, span in enumerate(of)} for of in (self.first, self.second))
        spans = (word.span() for word in _WORD.finditer(self.text))
        return [(mine[span], theirs[span]) for span in spans if span in mine and span in theirs]

    def touching(self, tokens: list[int]) -> list[int]:
        """The tokens of the second that may share a character with some of the first."""
        taken = np.zeros(len(self.text) + 1, np.bool_)
        for token in tokens:
            start, stop = self.somewhere[token]
            taken[start:stop] = True
        return [i for i, (start, stop) in enumerate(self.second) if taken[start:stop].any()]


@dataclass(frozen=True, slots=True)
class TwoTokenizers:
    """The corpus's tokenizer and another one, by their folders: it travels to loader workers."""

    corpus: str
    other: str

    def read(self, sequence: Sequence, vocabulary: Vocabulary) -> BothWays:
        """The text of a sequence, before anything of it was hidden."""
        mine, theirs = _opened(self.corpus), _opened(self.other)
        ids = sequence.original()
        ordinary = ~vocabulary.is_special[ids]
        places = [
            np.flatnonzero(ordinary & (sequence.sentences == number))
            for number in np.unique(sequence.sentences)
        ]
        pieces = [ids[at].tolist() for at in places]
        texts = mine.decode_batch(pieces, skip_special_tokens=False)
        first, somewhere, at = [_NOWHERE] * len(ids), [(0, 0)] * len(ids), 0
        for text, inside, expected, again in zip(
            texts, places, pieces, mine.encode_batch(texts, add_special_tokens=False), strict=True
        ):
            if again.ids == expected:
                for place, span in zip(inside, _bare(again.offsets, text), strict=True):
                    first[place] = somewhere[place] = (span[0] + at, span[1] + at)
            else:
                for place in inside:
                    somewhere[place] = (at, at + len(text))
            at += len(text) + 1
        whole = " ".join(texts)
        encoded = theirs.encode(whole, add_special_tokens=False)
        return BothWays(
            text=whole,
            first=first,
            somewhere=somewhere,
            second=_bare(encoded.offsets, whole),
            ids=np.array(encoded.ids, np.int32),
        )

    def vocabulary(self) -> Vocabulary:
        """What the other tokenizer's special tokens are."""
        return _vocabulary(self.other)


@cache
def _opened(folder: str) -> Any:
    """The tokenizer of a folder, for text that may spell special tokens; one for each process."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(open_tokenizer(Path(folder)).backend_tokenizer.to_str())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    return tokenizer


@cache
def _vocabulary(folder: str) -> Vocabulary:
    return derive_vocabulary(open_tokenizer(Path(folder)), Path(folder))


def _bare(offsets: list[Span], text: str) -> list[Span]:
    """Offsets without the space before a word, which many tokenizers count as a part of it."""
    bare = []
    for start, stop in offsets:
        inside = text[start:stop]
        left = start + len(inside) - len(inside.lstrip())
        bare.append((left, max(left, start + len(inside.rstrip()))))
    return bare


def _by_start(spans: list[Span]) -> dict[int, int]:
    """The token that begins at each character; of several, the first that has any."""
    found: dict[int, int] = {}
    for index, (start, stop) in enumerate(spans):
        if stop > start:
            found.setdefault(start, index)
    return found
