"""Cleans records before they are tokenized, and says why the ones it drops are dropped.

`normalise` changes a text and drops nothing: what cannot be seen goes, whitespace becomes single
spaces, Unicode is composed (NFC). Each check then keeps a record (None) or names the reason it is
dropped for; the reasons are counted into the manifest. A new check is one function and one entry
in `TEXT_CHECKS` or `PAIR_CHECKS`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

UNSEEN = (
    "[\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f"  # control characters that are not whitespace
    "\\u00ad\\u200b\\u2060\\ufeff"  # soft hyphen, zero-width space, word joiner, byte order mark
    "\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]"  # writing direction
)
"""Characters that are removed, as a pattern. The joiners U+200C and U+200D stay: Persian, Hindi
and emoji are spelled with them."""

SPACE_MARK = "▁"
"""SentencePiece writes a space as this character, so in a text it counts as one."""

_UNSEEN = re.compile(UNSEEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanConfig:
    """Which records are dropped."""

    max_characters: int = 5000
    """Longest text that is kept, in characters."""
    max_ratio: float = 5.0
    """A pair is dropped if one side is more than this many times as long as the other, in UTF-8
    bytes: by characters, Chinese would seem four times as short as English."""
    ratio_floor: int = 30
    """A side shorter than this many bytes counts as this long when sides are compared."""


def normalise(text: str) -> str:
    """The text without unseen characters, with single spaces, composed (NFC)."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", _UNSEEN.sub("", text)).replace(SPACE_MARK, " ")
    elif not text.isprintable():
        text = _UNSEEN.sub("", text)
    return " ".join(text.split())


def empty(texts: tuple[str, ...], config: CleanConfig) -> str | None:
    """Nothing is left of the text, or of one side of the pair."""
    del config
    return None if all(texts) else "empty"


def too_long(texts: tuple[str, ...], config: CleanConfig) -> str | None:
    """A text is longer than `max_characters`: most often not a sentence at all."""
    return "too long" if max(map(len, texts)) > config.max_characters else None


def identical(texts: tuple[str, ...], config: CleanConfig) -> str | None:
    """Both sides are the same: not translated."""
    del config
    return "identical" if texts[0] == texts[1] else None


def unequal(texts: tuple[str, ...], config: CleanConfig) -> str | None:
    """One side is much longer than the other: not a translation of it."""
    shorter, longer = sorted(len(text.encode()) for text in texts)
    over = longer > config.max_ratio * max(shorter, config.ratio_floor)
    return "length ratio" if over else None


TEXT_CHECKS = (empty, too_long)
PAIR_CHECKS = (empty, too_long, identical, unequal)


def why_dropped(texts: tuple[str, ...], config: CleanConfig) -> str | None:
    """The first reason to drop this record of normalised texts; None to keep it."""
    for check in PAIR_CHECKS if len(texts) == 2 else TEXT_CHECKS:
        reason = check(texts, config)
        if reason is not None:
            return reason
    return None
