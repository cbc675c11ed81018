"""Examples as tasks read them, one class for each kind of task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """A sentence, or two, and a label: NLI, paraphrases, reviews. Predicted: the label."""

    id: str
    """The same for the same example in every language, where the task is a translated one."""
    first: str
    second: str | None = None
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """Words with a tag each: names, parts of speech. Predicted: the tags."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer's text and where it starts in the context, in characters."""

    text: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question on a context. Predicted: the answer's text, empty where there is none."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    """All right answers; none: the context does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A premise and alternatives, one of them right. Predicted: its index."""

    id: str
    premise: str
    asks: str
    """What is asked of the premise: `cause` or `effect`."""
    choices: tuple[str, ...]
    right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """A sentence and its translation. Predicted: the index of the translation."""

    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """A translation hidden among sentences that have none: of those, one side is missing.

    Predicted: pairs (i, j), the first side of example i with the second side of example j.
    """

    first: str | None
    second: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WordAligned:
    """Two tokenized sentences and gold links (i, j) from 0. Predicted: the set of links."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    """Contains the sure ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A word and its translations. Predicted: a ranking of the other language's words."""

    word: str
    translations: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analogy:
    """`a` is to `b` as `c` is to `d`. Predicted: d."""

    a: str
    b: str
    c: str
    d: str
    section: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A cloze about a fact: the prompt has `[Y]` where the object stands. Predicted: the object."""

    id: str
    relation: str
    group: str
    """What relations are averaged within, a corpus and a kind: `T-REx N-1`, `ConceptNet`."""
    prompt: str
    answers: tuple[str, ...]
    """All right objects, the first one canonical."""
    candidates: tuple[str, ...] = ()
    """What to choose from; none: open, any words of the vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Two words and how alike people find them. Predicted: a number, only its rank counts."""

    first: str
    second: str
    score: float
    section: str
    """The set that the pair is from: scales of different sets cannot be compared."""
