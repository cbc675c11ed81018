"""The hand-written dictionaries: for every language, each concept's word and its irregular forms.

Reads `<language>.txt` in this folder; gives a `Lexicon`. A line is a concept's key, then columns
whose meaning the language's grammar knows, then options (`pl=books`). `_` stands for a space.
Sections are categories, and the order of concepts inside one is their rank: a small world keeps
the first of each. All languages list the same concepts in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Entry:
    """One concept in one language."""

    columns: tuple[str, ...]
    options: Mapping[str, str]
    category: str


Lexicon = dict[str, Entry]


@cache
def read_lexicon(language: str) -> Lexicon:
    """All concepts of a language, in the order of its file."""
    text = files(__name__).joinpath(f"{language}.txt").read_text(encoding="utf-8")
    lexicon: Lexicon = {}
    category = ""
    for line in text.splitlines():
        if line.startswith("["):
            category = line.strip("[]")
        elif line and not line.startswith("#"):
            key, *fields = line.split()
            columns = tuple(field.replace("_", " ") for field in fields if "=" not in field)
            options = dict(field.split("=", 1) for field in fields if "=" in field)
            lexicon[key] = Entry(columns, MappingProxyType(options), category)
    return lexicon
