"""Words of the languages of India: punctuation apart, theirs too; numbers and dates left whole."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from isoglot.corpus.languages import plain_code

if TYPE_CHECKING:
    from collections.abc import Callable


def divider(language: str) -> Callable[[str], list[str]]:
    """The Indic NLP Library; Urdu has punctuation of its own."""
    from indicnlp.tokenize.indic_tokenize import trivial_tokenize

    return partial(trivial_tokenize, lang=plain_code(language))
