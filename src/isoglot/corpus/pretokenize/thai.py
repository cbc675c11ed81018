"""Thai words, by a dictionary: the longest that fit, over all of a text (newmm)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def divider(language: str) -> Callable[[str], list[str]]:
    """PyThaiNLP; its safe engine takes a bounded time for any text."""
    from pythainlp.tokenize import word_tokenize

    del language
    return partial(word_tokenize, engine="newmm-safe", keep_whitespace=False)
