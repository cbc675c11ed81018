"""Character offsets of byte-fallback pieces: `<0xE0>` `<0xB8>` `<0x9B>` for a Thai letter.

A Unigram model joins neighboring characters that it does not know and gives every byte of the run
the offsets of the whole run: in Thai, which has no spaces, those of a sentence. `split_byte_runs`
gives each byte the offsets of its own character.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
Span = tuple[int, int]


def is_byte_piece(token: str) -> bool:
    """Whether a token stands for one byte."""
    # most tokens are none, and there are millions of them
    return token.startswith("<0x") and _BYTE.fullmatch(token) is not None


def split_byte_runs(tokens: Sequence[str], spans: Sequence[Span], text: str) -> list[Span]:
    """The offsets of tokens in a text, each byte of a run with those of its character."""
    found: list[Span] = []
    marked = [
        (is_byte_piece(token), tuple(span)) for token, span in zip(tokens, spans, strict=True)
    ]
    for (is_run, (start, end)), group in groupby(enumerate(marked), key=lambda item: item[1]):
        places = [place for place, _ in group]
        if is_run and end - start > 1:
            found += _characters([tokens[place] for place in places], text[start:end], start)
        else:
            found += [(start, end)] * len(places)
    return found


def _characters(tokens: Sequence[str], text: str, offset: int) -> list[Span]:
    """The character of each byte of a run: the text itself in UTF-8, or normalized (NFKC)."""
    parts = [character.encode() for character in text]
    if sum(map(len, parts)) != len(tokens):
        parts = [unicodedata.normalize("NFKC", character).encode() for character in text]
    if sum(map(len, parts)) != len(tokens):  # characters were joined: spread them evenly
        places = (number * len(text) // len(tokens) for number in range(len(tokens)))
    else:
        places = (place for place, part in enumerate(parts) for _ in part)
    return [(offset + place, offset + place + 1) for place in places]
