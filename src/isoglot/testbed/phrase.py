"""Surface text in the making: pieces (words), phrases (cached runs of pieces), sentences.

A phrase belongs to one slot of a meaning; its pieces say which kinds of that slot they express.
Text needs only the phrases' strings; words with nodes and mentions are worked out on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from isoglot.testbed.meaning import KINDS, Kind

HEAD = (int(Kind.HEAD),)


class Piece(NamedTuple):
    """One word or punctuation mark."""

    form: str
    upos: str
    kinds: tuple[int, ...] = HEAD
    entity: str = ""
    """Id of the entity that the word names, or is part of the name of."""
    mention: int = 0
    """How many characters of the form belong to that name (a case ending may follow)."""


class Phrase(NamedTuple):
    """Pieces that always stand together, and their text with the space before it."""

    pieces: tuple[Piece, ...]
    text: str


Parts = list[tuple[int, Phrase]]
"""A realised sentence: each phrase with the slot it expresses."""


class Word(NamedTuple):
    """A word of a finished sentence."""

    form: str
    upos: str
    nodes: tuple[int, ...]
    start: int
    """Where its first character stands in the sentence."""
    entity: str
    mention: int


class Mention(NamedTuple):
    """A stretch of a text that names an entity: `text[start:end]`, words `first` to `last - 1`."""

    entity: str
    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of one language: its text and everything known about its words."""

    text: str
    words: tuple[Word, ...]

    def forms(self) -> tuple[str, ...]:
        """The words as they stand in the text."""
        return tuple(word.form for word in self.words)

    def mentions(self) -> list[Mention]:
        """The named entities, in the order of the text."""
        found: list[Mention] = []
        previous: tuple[str, int] | None = None
        for index, word in enumerate(self.words):
            name = (word.entity, word.nodes[0] // KINDS) if word.entity else None
            end = word.start + word.mention
            if name is not None and name == previous:
                found[-1] = found[-1]._replace(end=end, last=index + 1)
            elif name is not None:
                found.append(Mention(word.entity, word.start, end, index, index + 1))
            previous = name
        return found


def align(first: Sentence, second: Sentence) -> tuple[tuple[int, int], ...]:
    """Pairs of word indices that express a node of the meaning in common, in order."""
    places: dict[int, list[int]] = {}
    for index, word in enumerate(second.words):
        for node in word.nodes:
            places.setdefault(node, []).append(index)
    links = {
        (index, other)
        for index, word in enumerate(first.words)
        for node in word.nodes
        for other in places.get(node, ())
    }
    return tuple(sorted(links))
