"""Finding what a token spells among the tokens of the source.

MetaXLM looks up a word as it is, then normalised (section 3.2), and leaves open what that means.
Here: the same spelling under the other tokenizer's way of marking words, then NFKC, then without
case, then all of these with the word boundary left out of account, which WordPiece puts around
commas and Chinese characters and SentencePiece does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from isoglot.models.transplant.surface import Surface, composed, folded, is_byte_piece

if TYPE_CHECKING:
    from isoglot.models.transplant.tokens import Tokens

Found = Literal["exact", "marker", "unicode", "case", "boundary"]
"""How a token was found, the strictest way first."""


class Hit(NamedTuple):
    """A source token, and how it was found."""

    id: int
    kind: Found


class Lookup:
    """The source's ordinary tokens by what they spell; of several alike, the lowest id."""

    def __init__(self, source: Tokens) -> None:
        """Index the tokens of the source."""
        self._source = source
        self._same: dict[Surface, int] = {}
        self._composed: dict[Surface, int] = {}
        self._folded: dict[Surface, int] = {}
        # bytes last: a character's own piece goes before the byte that spells it
        ordinary = [entry for entry in source.by_id if entry[0] not in source.special]
        ordinary.sort(key=lambda entry: is_byte_piece(entry[1], source.written))
        for index, token in ordinary:
            spelled = source.surface(token)
            self._same.setdefault(spelled, index)
            self._composed.setdefault(_composed(spelled), index)
            self._folded.setdefault(_folded(spelled), index)

    def token(self, token: str, spelled: Surface) -> Hit | None:
        """The source token that is written and means the same, else the nearest by spelling."""
        index = self._source.ids.get(token)
        same = index is not None and index not in self._source.special
        if index is not None and same and self._source.surface(token) == spelled:
            return Hit(index, "exact")
        return self.spelling(spelled)

    def spelling(self, spelled: Surface) -> Hit | None:
        """The source token with the nearest spelling."""
        hit = self._steps(spelled)
        if hit is None:
            other = self._steps(Surface(spelled.text, not spelled.starts))
            hit = None if other is None else Hit(other.id, "boundary")
        return hit

    def _steps(self, spelled: Surface) -> Hit | None:
        if (index := self._same.get(spelled)) is not None:
            return Hit(index, "marker")
        if (index := self._composed.get(_composed(spelled))) is not None:
            return Hit(index, "unicode")
        if (index := self._folded.get(_folded(spelled))) is not None:
            return Hit(index, "case")
        return None


def _composed(spelled: Surface) -> Surface:
    return Surface(composed(spelled.text), spelled.starts)


def _folded(spelled: Surface) -> Surface:
    return Surface(folded(spelled.text), spelled.starts)
