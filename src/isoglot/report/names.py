"""Names on pages and in figures: how long they may be, and how wide they are.

A model, task or language may have any name; one of 100,000 characters would fill a page by itself.
"""

from __future__ import annotations

import unicodedata

MAX_NAME = 120
"""Characters of a name that pages show."""
MAX_LABEL = 70
"""Characters of a name in the legend of a chart."""


def shorten(text: str, length: int = MAX_NAME) -> str:
    """The text, or the beginning of a longer one."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def display_width(text: str) -> float:
    """Width in Latin letters: a Chinese, Japanese or Korean one is about 1.8, an accent none."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    none = sum(unicodedata.combining(letter) != 0 for letter in text)
    return len(text) + 0.8 * wide - none
