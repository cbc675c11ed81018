"""The nine grammars: one file a language, one class each."""

from __future__ import annotations

from functools import cache

from isoglot.testbed.languages.ar import Arabic
from isoglot.testbed.languages.de import German
from isoglot.testbed.languages.en import English
from isoglot.testbed.languages.es import Spanish
from isoglot.testbed.languages.grammar import Grammar
from isoglot.testbed.languages.hi import Hindi
from isoglot.testbed.languages.ru import Russian
from isoglot.testbed.languages.sw import Swahili
from isoglot.testbed.languages.tr import Turkish
from isoglot.testbed.languages.zh import Chinese

_CLASSES: tuple[type[Grammar], ...] = (
    English, German, Spanish, Russian, Turkish, Hindi, Arabic, Chinese, Swahili,
)  # fmt: skip
_GRAMMARS = {grammar.language: grammar for grammar in _CLASSES}

LANGUAGES: tuple[str, ...] = tuple(_GRAMMARS)
"""The codes of the languages of the world."""


@cache
def grammar_of(language: str) -> Grammar:
    """The grammar of a language, made once."""
    return _GRAMMARS[language]()


__all__ = ["LANGUAGES", "Grammar", "grammar_of"]
