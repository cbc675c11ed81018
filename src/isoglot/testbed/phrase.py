"""Surface forms: word forms, phrases (cached runs of word forms) and sentences.

A phrase expresses one slot of a meaning; its word forms say which kinds of that slot they express.
Plain text needs only the phrases' strings; words with nodes and mentions are built on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from isoglot.testbed.meaning import HEAD, KINDS


class WordForm(NamedTuple):
    """One word or punctuation mark, before its sentence is put together."""

    form: str
    upos: str
    kinds: tuple[int, ...] = HEAD
    entity: str = ""
    """Id of the entity that the word names, or is part of the name of."""
    name_length: int = 0
    """How many characters of the form belong to that name (a case ending may follow)."""


class Phrase(NamedTuple):
    """Word forms that always stand together, and their text with the space before it."""

    forms: tuple[WordForm, ...]
    text: str


Realization = list[tuple[int, Phrase]]
"""The phrases of a sentence in order, each with the slot it expresses."""


class Word(NamedTuple):
    """A word of a finished sentence; `start` is the offset of its first character."""

    form: str
    upos: str
    nodes: tuple[int, ...]
    start: int
    entity: str
    name_length: int


class Mention(NamedTuple):
    """An entity's name in a text: `text[start:end]`, words `first_word` to `end_word - 1`."""

    entity: str
    start: int
    end: int
    first_word: int
    end_word: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of one language: its text and its analyzed words."""

    text: str
    words: tuple[Word, ...]

    def forms(self) -> tuple[str, ...]:
        """The words as strings."""
        return tuple(word.form for word in self.words)

    def mentions(self) -> list[Mention]:
        """The named entities, in the order of the text."""
        found: list[Mention] = []
        previous: tuple[str, int] | None = None
        for index, word in enumerate(self.words):
            name = (word.entity, word.nodes[0] // KINDS) if word.entity else None
            end = word.start + word.name_length
            if name is not None and name == previous:
                found[-1] = found[-1]._replace(end=end, end_word=index + 1)
            elif name is not None:
                found.append(Mention(word.entity, word.start, end, index, index + 1))
            previous = name
        return found


@dataclass(frozen=True, slots=True)
class Translation:
    """One meaning in two languages, with the gold word alignment."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]
    """Pairs (index into first, index into second)."""
    first_text: str
    second_text: str


def align(first: Sentence, second: Sentence) -> Translation:
    """Link the words of two sentences that express a node of their meaning in common."""
    words_by_node: dict[int, list[int]] = {}
    for index, word in enumerate(second.words):
        for node in word.nodes:
            words_by_node.setdefault(node, []).append(index)
    links = {
        (index, other)
        for index, word in enumerate(first.words)
        for node in word.nodes
        for other in words_by_node.get(node, ())
    }
    return Translation(
        first=first.forms(),
        second=second.forms(),
        alignment=tuple(sorted(links)),
        first_text=first.text,
        second_text=second.text,
    )
