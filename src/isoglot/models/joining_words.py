"""Words that a model writes, joined to a text as people write it.

A model whose text was divided into words (`corpus.pretokenize`) writes words with spaces between
them, and a comma is a word. Each way to divide has one to join. Where two texts divide alike
(`3 %` and `3%`), the usual one comes out.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from isoglot.corpus.languages import plain_code
from isoglot.corpus.tokenizer import NO_SPACES
from isoglot.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isoglot.corpus.pretokenize import Name


def joiner(way: Name, language: str) -> Callable[[str], str]:
    """A function from words with spaces between them to a text.

    Args:
        way: how text of the language was divided.
        language: its code.

    Raises:
        ModelError: it needs a package that is not there.
    """
    try:
        return _WAYS[way](plain_code(language))
    except ImportError as error:
        raise ModelError(
            f"joining words that {way!r} divided needs one more package ({error}). "
            "Run: pip install 'isoglot[pretokenize]'"
        ) from error


def _nothing(language: str) -> Callable[[str], str]:
    del language
    return str


def _moses(language: str) -> Callable[[str], str]:
    from sacremoses import MosesDetokenizer

    joins = MosesDetokenizer(language)

    def join(words: str) -> str:
        text: str = joins.detokenize(words.split(), unescape=False)
        return text

    return join


def _indic(language: str) -> Callable[[str], str]:
    from indicnlp.tokenize.indic_detokenize import trivial_detokenize

    def join(words: str) -> str:
        text: str = trivial_detokenize(words, language)
        return text

    return join


def _without_spaces(language: str) -> Callable[[str], str]:
    del language

    def join(words: str) -> str:
        text = ""
        for word in words.split():
            # words of other scripts, and numbers, keep their spaces
            after, before = text[-1:], word[0]
            apart = _spaced(after) and _spaced(before)
            apart = apart and after not in _OPENING and before not in _CLOSING
            text += f" {word}" if apart else word
        return text

    return join


_OPENING, _CLOSING = "([{", ",.;:!?%)]}"


def _spaced(character: str) -> bool:
    """Has a script spaces beside such a character? Wide signs, as `。`, have none."""
    wide = unicodedata.east_asian_width(character) in "WF" if character else True
    return not wide and not NO_SPACES.match(character)


_WAYS: Mapping[Name, Callable[[str], Callable[[str], str]]] = {
    "none": _nothing,
    "moses": _moses,
    "indic": _indic,
    "thai": _without_spaces,
    "zh": _without_spaces,
}
