"""The records a world gives: small values, one per example."""

from __future__ import annotations

from dataclasses import dataclass

from isoglot.testbed.phrase import Mention


@dataclass(frozen=True, slots=True)
class Translation:
    """One meaning in two languages, with gold word alignment."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]
    """Pairs (index into first, index into second)."""
    first_text: str
    second_text: str


@dataclass(frozen=True, slots=True)
class Description:
    """What there is to say about an entity."""

    entity: str
    text: str


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A sentence and the entities it names, by character span."""

    text: str
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class Inference:
    """Natural language inference."""

    premise: str
    hypothesis: str
    label: str
    """entailment, neutral or contradiction."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question whose answer is a span of the context."""

    context: str
    question: str
    answer: str
    answer_start: int


@dataclass(frozen=True, slots=True)
class Tagged:
    """Words, each with a tag (entity or part of speech)."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """Two sentences: 1 if they say the same, 0 if they only look alike."""

    first: str
    second: str
    label: int


@dataclass(frozen=True, slots=True)
class Opinion:
    """A text that praises (1) or blames (0)."""

    text: str
    label: int


@dataclass(frozen=True, slots=True)
class Cloze:
    """A true sentence with the span to be left out: `text[start:end] == answer`."""

    text: str
    answer: str
    start: int
    end: int
    relation: str
    subject: str
    object: str
