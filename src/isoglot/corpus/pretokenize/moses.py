"""Words by the rules of Moses: punctuation apart, abbreviations of the language left whole."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from isoglot.corpus.languages import plain_code

if TYPE_CHECKING:
    from collections.abc import Callable


def divider(language: str) -> Callable[[str], list[str]]:
    """sacremoses, which takes English abbreviations for a language it does not know."""
    from sacremoses import MosesTokenizer

    return partial(MosesTokenizer(plain_code(language)).tokenize, escape=False)
