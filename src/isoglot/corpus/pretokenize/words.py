"""How the text of each language is divided into words, and the file that keeps it with a tokenizer.

A tokenizer.json cannot call these libraries. Its folder says in pretokenize.json what was done to
the text it was trained on, so that whoever gives it text can do the same.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, get_args

from isoglot.corpus.disk import write_atomically
from isoglot.errors import CorpusError, RecipeError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Name = Literal["none", "moses", "thai", "zh", "indic"]
"""A way to divide text into words; `none` leaves it as it is."""

FILE = "pretokenize.json"
OTHERS = "*"
"""Stands for every language that is not named."""

WAYS: Mapping[Name, str] = {
    "moses": "isoglot.corpus.pretokenize.moses",
    "thai": "isoglot.corpus.pretokenize.thai",
    "zh": "isoglot.corpus.pretokenize.zh",
    "indic": "isoglot.corpus.pretokenize.indic",
}
"""Name -> module, whose `divider(language)` gives a function from text to words."""


class Pretokenization:
    """For each language, the way its text is divided into words."""

    def __init__(self, names: Mapping[str, Name]) -> None:
        """Language -> way; `*` for every other language. Nothing is imported yet."""
        for language, name in names.items():
            if name not in get_args(Name):
                raise RecipeError(
                    f"pretokenize.{language}: {name!r} is no way to find words; "
                    f"{nearest(name, get_args(Name))}"
                )
        self.names = dict(names)

    def name_of(self, language: str) -> Name:
        """The way of one language."""
        return self.names.get(language, self.names.get(OTHERS, "none"))

    def apply(self, text: str, language: str) -> str:
        """The words of a text with single spaces between them."""
        name = self.name_of(language)
        if name == "none":
            return text
        return " ".join(word for word in _divider(name, language)(text) if word.strip())

    def check(self) -> None:
        """Raises unless every package that is needed is there."""
        for name in set(self.names.values()) - {"none"}:
            _divider(name, "en")

    def save(self, folder: Path) -> None:
        """Writes pretokenize.json into a tokenizer's folder; nothing where nothing is divided."""
        if self.names:
            text = json.dumps(self.names, indent=1, sort_keys=True)
            write_atomically(folder / FILE, (text + "\n").encode())

    @classmethod
    def load(cls, folder: Path) -> Pretokenization:
        """What the folder of a tokenizer says; that nothing is divided where it says nothing."""
        path = folder / FILE
        try:
            names = json.loads(path.read_text("utf-8"))
            return cls({str(language): name for language, name in names.items()})
        except FileNotFoundError:
            return cls({})
        except (OSError, ValueError, AttributeError) as error:
            raise CorpusError(
                f"{path}: is damaged ({error}). Copy it again with its tokenizer."
            ) from error


@cache
def _divider(name: Name, language: str) -> Callable[[str], list[str]]:
    """The function of a way, for one language; loaded once in a process."""
    try:
        divide: Callable[[str], list[str]] = import_module(WAYS[name]).divider(language)
    except ImportError as error:
        raise CorpusError(
            f"pretokenize: {name!r} needs one more package ({error}). "
            "Run: pip install 'isoglot[pretokenize]'"
        ) from error
    return divide
