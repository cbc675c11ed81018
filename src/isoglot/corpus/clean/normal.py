"""Normal text: what cannot be seen goes, whitespace becomes single spaces, Unicode is composed."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isoglot.corpus.clean.settings import UnicodeForm

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


def normalise(text: str, form: UnicodeForm = "NFC") -> str:
    """The text without unseen characters, with single spaces, composed (NFC) or folded (NFKC)."""
    if not text.isascii():
        text = unicodedata.normalize(form, _UNSEEN.sub("", text)).replace(SPACE_MARK, " ")
    elif not text.isprintable():
        text = _UNSEEN.sub("", text)
    return " ".join(text.split())
