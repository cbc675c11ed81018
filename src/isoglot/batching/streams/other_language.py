"""Another language for a text: the one that `btmlm` writes in, drawn once with the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.errors import CorpusError, nearest
from isoglot.types import FloatArray

if TYPE_CHECKING:
    from isoglot.corpus import Corpus


@dataclass(frozen=True, slots=True)
class OtherLanguages:
    """The languages that a text of some language may be paired with, and how often each is."""

    ids: tuple[int, ...]
    cumulative: FloatArray

    def draw(self, chance: float) -> int:
        """The language of a number in [0, 1)."""
        if not self.ids:
            return -1
        place = int(np.searchsorted(self.cumulative, chance, "right"))
        return self.ids[min(place, len(self.ids) - 1)]


def other_languages(
    corpus: Corpus, language: str, others: tuple[str, ...], alpha: float
) -> OtherLanguages:
    """The other languages of a corpus, with p proportional to N^alpha of their tokens.

    Raises:
        CorpusError: a language that was asked for has no text, or only the text's own is left.
    """
    tokens = {code: number for code, number in corpus.tokens_of_languages().items() if number}
    for code in others:
        if code not in tokens:
            raise CorpusError(
                f"others: {corpus.folder} has nothing for language {code!r}: "
                f"{nearest(code, tokens)}"
            )
    chosen = [code for code in (others or tokens) if code != language]
    if others and not chosen:
        raise CorpusError(
            f"others: texts in {language!r} have no other language to choose. Name a second one, "
            f"or leave {language!r} out of the stream's languages."
        )
    shares = np.array([tokens[code] for code in chosen], np.float64) ** alpha
    return OtherLanguages(
        tuple(corpus.languages.index(code) for code in chosen),
        np.cumsum(shares / shares.sum()) if chosen else shares,
    )
