"""Words that a model writes, joined to a text as people write it.

A model whose text was divided into words (`corpus.pretokenize`) writes words with spaces between
them, and a comma is a word. Each way to divide has one to join. Where two texts divide alike
(`3 %` and `3%`), the usual one comes out.
"""

from __future__ import annotations

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
            apart = text and _stands_apart(text[-1]) and _stands_apart(word[0])
            text += f" {word}" if apart else word
        return text

    return join


def _stands_apart(character: str) -> bool:
    return character.isalnum() and not NO_SPACES.match(character)


_WAYS: Mapping[Name, Callable[[str], Callable[[str], str]]] = {
    "none": _nothing,
    "moses": _moses,
    "indic": _indic,
    "thai": _without_spaces,
    "zh": _without_spaces,
}
