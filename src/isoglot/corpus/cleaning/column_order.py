"""Whether the two sides of pairs are in the order of their languages, by language identification.

Sides in the other order train without any error: every sentence has the wrong language then.
`prepare` asks for the first pairs of every file and warns, `adapt` exchanges the columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.corpus.cleaning.language_id import LanguageIdentifier
from isoglot.languages import plain_code

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_COMPARED = 200
"""Texts of a side that are identified."""
_MOSTLY = 0.8


def are_swapped(first: Sequence[str], second: Sequence[str], languages: Sequence[str]) -> bool:
    """Whether each of two columns is in the language of the other, by language identification.

    False for languages that identification does not tell apart.
    """
    own, other = map(plain_code, languages)
    if not first or own == other:
        return False
    identifier = LanguageIdentifier.open()
    if own not in identifier.labels or other not in identifier.labels:
        return False
    places = [identifier.labels.index(code) for code in (own, other)]
    likelier = []
    for texts in (first, second):
        found = identifier.probabilities(list(texts[:MAX_COMPARED]))[:, places]
        likelier.append(float((found[:, 1] > found[:, 0]).mean()))
    return likelier[0] > _MOSTLY and likelier[1] < 1 - _MOSTLY
