"""The examples that tasks read, one class for each kind of task."""

from __future__ import annotations

from dataclasses import dataclass

OBJECT = "[Y]"
"""Marks the place of the object in the prompt of a `Fact`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledText:
    """A sentence, or a pair, and its label: NLI, paraphrases, reviews. Predicted: the label."""

    id: str
    """In a translated task, the same for one example in every language."""
    first: str
    second: str | None = None
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSentence:
    """Words with one tag each: named entities, parts of speech. Predicted: the tags."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    section: str = ""
    """Its treebank, where a language has several: each is scored alone, and their mean is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The text of an answer and its first character in the context."""

    text: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question on a context. Predicted: the text of the answer, empty for no answer."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    """All correct answers; none if the context does not answer the question."""
    split_context: str | None = None
    """The context with spaces between its words, for a model that reads split text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAnnotation:
    """What one person says of a question on a document (TyDiQA)."""

    passage: int
    """Index of the passage with the answer, or -1."""
    span: tuple[int, int] | None
    """First byte of the minimal answer in the document's UTF-8, and the byte after it."""
    yes_no: str
    """`yes`, `no` or `none`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentQuestion(Question):
    """A question on a whole document, in passages. Predicted: a place in the document."""

    passages: tuple[tuple[int, int], ...]
    """First byte of each passage in the document's UTF-8, and the byte after it."""
    annotations: tuple[AnswerAnnotation, ...]


class PredictedAnswer(str):
    """A predicted text, empty for no answer, with the best span and how much it is preferred.

    A task that is scored with thresholds reads more than the text; others take it for the text.
    """

    __slots__ = ("best", "end", "null_odds", "start")

    best: str
    """The text of the best span, also where no answer is predicted; empty without any span."""
    start: int
    """First character of the best span in the context."""
    end: int
    """Character after the best span."""
    null_odds: float
    """Score of no answer minus the score of the best span."""

    def __new__(
        cls, text: str, *, best: str, start: int, end: int, null_odds: float
    ) -> PredictedAnswer:
        """A text and what the model thinks of it."""
        answer = super().__new__(cls, text)
        answer.best, answer.start, answer.end = best, start, end
        answer.null_odds = null_odds
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleChoice:
    """A premise and alternatives, one of them correct. Predicted: its index."""

    id: str
    premise: str
    asks: str
    """Relation of the alternatives to the premise: `cause` or `effect`."""
    choices: tuple[str, ...]
    right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePair:
    """A sentence and its translation. Predicted: the index of the translation."""

    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BitextEntry:
    """A translation pair, or a sentence without a translation, whose other side is none.

    Predicted: pairs (i, j), the first side of entry i with the second side of entry j.
    """

    first: str | None
    second: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedPair:
    """Two tokenized sentences and gold links (i, j) from 0. Predicted: the set of links."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    """Includes the sure links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LexiconEntry:
    """A word and its translations. Predicted: a ranking of the words of the other language."""

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
    """A fact as a cloze prompt, with `OBJECT` in the place of its object. Predicted: the object."""

    id: str
    relation: str
    group: str
    """Corpus and kind of the relation, within which relations are averaged: `T-REx N-1`."""
    prompt: str
    answers: tuple[str, ...]
    """All correct objects, the canonical one first."""
    candidates: tuple[str, ...] = ()
    """Objects to choose from (typed querying); none: any tokens of the vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuery:
    """A text that stands for an entity, and the entity's description in another language.

    The descriptions of all examples of a split are the candidates. Predicted: the rank of the
    right one, from 1; 0 for an example without a text, which is only a candidate.
    """

    entity: str
    """Id of the entity that is looked for, such as `Q42`."""
    description: str
    text: str = ""
    """The context of a mention, or the description of a fact's subject."""
    start: int = 0
    """First character of the mention in the text."""
    end: int = 0
    """Character behind the mention; equal to `start` if there is none."""
    relation: int | None = None
    """P number of the relation, for a fact."""
    also: tuple[str, ...] = ()
    """Other right entities: they are no candidates for this example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedWordPair:
    """Two words and their similarity as rated by people. Predicted: a number; its rank counts."""

    first: str
    second: str
    score: float
    section: str
    """The data set of the pair: ratings of different sets have different scales."""
