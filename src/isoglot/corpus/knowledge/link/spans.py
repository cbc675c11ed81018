"""Tokens of sentences, and where character spans lie among them.

A mention is marked in characters; the encoder sees tokens. A span becomes the tokens that have a
character of it: where a token reaches beyond the anchor text (often where words are not spaced),
it is part of the mention, so that masking the mention hides all of the anchor text.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.clean import SPACE_MARK
from isoglot.corpus.knowledge.link.fates import KEPT, NO_TOKENS, SHARED, TOO_LONG
from isoglot.corpus.tokenizer import TOKENIZER_FILE, flatten
from isoglot.types import IntArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt


_BYTE_SPACE = "Ġ"


@dataclass(frozen=True, slots=True)
class Encoded:
    """Sentences as ids, one after the other, and the characters each id stands for."""

    ids: IntArray
    lengths: IntArray
    """Ids of each sentence."""
    starts: LongArray
    """The first character of each id, characters counted through all sentences."""
    ends: LongArray
    characters: LongArray
    """Where the characters of each sentence begin; a gap of one lies between sentences."""


class SpanEncoder:
    """Turns sentences into ids and character spans into spans of ids; no special tokens.

    A text that merely spells a special token (`<mask>`) is text like any other.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` is the tokenizer folder of a corpus."""
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True
        marks = map(self._tokenizer.token_to_id, (SPACE_MARK, _BYTE_SPACE))
        self._marks = [mark for mark in marks if mark is not None]

    def encode(self, texts: Sequence[str]) -> Encoded:
        """All ids of the texts."""
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ids, lengths = flatten([encoding.ids for encoding in encoded])
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        characters = np.concatenate([[0], np.cumsum(sizes + 1)[:-1]]) if len(texts) else sizes
        places = chain.from_iterable(chain.from_iterable(e.offsets for e in encoded))
        offsets = np.fromiter(places, np.int64, 2 * len(ids)).reshape(-1, 2)
        _spread_bytes(offsets, lengths, texts)
        offsets += np.repeat(characters, lengths)[:, None]
        return Encoded(ids, lengths, offsets[:, 0], offsets[:, 1], characters)

    def spans(
        self, encoded: Encoded, sentence: LongArray, start: LongArray, end: LongArray
    ) -> tuple[LongArray, LongArray]:
        """The tokens of each character span, [first, last), counted from its sentence's start.

        Where no token has a character of the span, first is not below last.
        """
        base = encoded.characters[sentence]
        # offsets never fall inside a text; a composed character may leave a gap
        first = np.searchsorted(np.maximum.accumulate(encoded.ends), base + start, "right")
        last = np.searchsorted(encoded.starts, base + end, "left")
        begins = np.concatenate([[0], np.cumsum(encoded.lengths, dtype=np.int64)])
        # the mark that stands for a space before the text claims the text's first character
        at_start = (first == begins[sentence]) & (first < last)
        first[at_start] += np.isin(encoded.ids[first[at_start]], self._marks)
        return first - begins[sentence], last - begins[sentence]


def _spread_bytes(offsets: LongArray, lengths: IntArray, texts: Sequence[str]) -> None:
    """Gives each byte the character it belongs to, where characters are spelled in bytes.

    The tokenizer says of every byte of a run of unknown characters that it stands for all of them.
    """
    owners = np.repeat(np.arange(len(texts)), lengths)
    begins = np.ones(len(offsets), np.bool_)
    begins[1:] = (offsets[1:] != offsets[:-1]).any(axis=1) | (owners[1:] != owners[:-1])
    first = np.flatnonzero(begins)
    sizes = np.diff(np.append(first, len(offsets)))
    wide = offsets[first, 1] - offsets[first, 0] > 1
    for start, size in zip(first[wide & (sizes > 1)], sizes[wide & (sizes > 1)], strict=True):
        low, high = offsets[start].tolist()
        widths = [len(letter.encode()) for letter in texts[owners[start]][low:high]]
        if sum(widths) == size:
            places = np.repeat(np.arange(low, high), widths)
            offsets[start : start + size] = np.stack([places, places + 1], axis=1)


def span_fates(
    sentence: LongArray, first: LongArray, last: LongArray, *, longest: int
) -> npt.NDArray[np.str_]:
    """What becomes of mentions with these tokens; they are sorted by sentence and place."""
    fates = np.full(len(first), KEPT, dtype="<U24")
    width = int(last.max(initial=0)) + 1
    ends = sentence * width + last
    before = np.concatenate([[-1], np.maximum.accumulate(ends)[:-1]]) if len(ends) else ends
    fates[sentence * width + first < before] = SHARED
    fates[last - first > longest] = TOO_LONG
    fates[first >= last] = NO_TOKENS
    return fates
