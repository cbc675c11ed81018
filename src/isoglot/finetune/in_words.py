"""Examples as a model's training text was: divided into words first, where its tokenizer's was.

`in_words` reads the examples of one part and its language (`sw`; for two texts `en-sw`), and gives
them divided. Words that a task gives (tags, alignments) stay as they are: labels belong to them.
A question's context stays too, since answers are its characters; its divided form lies beside it,
and `Places` leads from the characters of one to those of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial, singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.corpus.languages import plain_code
from isoglot.errors import CorpusError
from isoglot.tasks.examples import (
    Analogy,
    Choice,
    Classified,
    Entry,
    Fact,
    Likeness,
    Mined,
    Question,
    Translated,
)
from isoglot.tasks.facts import OBJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isoglot.corpus.pretokenize import Pretokenization
    from isoglot.types import IntArray

    Divide = Callable[[str], str]

_STANDS_FOR_OBJECT = "Qxyobjectyxq"
"""A word that no way divides, in the place of `[Y]`, which all of them would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedQuestion(Question):
    """A question whose context a model reads in another form than answers are counted in."""

    divided: str
    """The context with spaces between its words."""


def in_words(examples: Sequence[Any], language: str, words: Pretokenization) -> list[Any]:
    """The examples of a part, each text divided by the rules of its language."""
    if not words.names:
        return list(examples)
    first, _, second = language.partition("-")
    of_first, of_second = (
        # contexts and premises come several times
        cache(partial(divided, language=code, words=words))
        for code in (first, second or first)
    )
    return [_divided(example, of_first, of_second) for example in examples]


def divided(text: str, language: str, words: Pretokenization) -> str:
    """A text divided as the corpus's was, whose code for the language may be a longer one."""
    if language not in words.names:
        same = (code for code in words.names if plain_code(code) == plain_code(language))
        language = next(same, language)
    return words.apply(text, language)


class Places:
    """Where the characters of a divided text stand in the text itself."""

    def __init__(self, text: str, divided: str) -> None:
        self._starts, self._ends = (
            np.array(found, np.int32) for found in zip(*_pairs(text, divided), strict=True)
        )

    def of(self, spans: IntArray) -> IntArray:
        """(N, 2) starts and ends in the text, of those in the divided one.

        A space that was put in has no width.
        """
        starts = self._starts[spans[:, 0]]
        return np.stack([starts, np.maximum(starts, self._ends[spans[:, 1]])], axis=1)


def _pairs(text: str, divided: str) -> list[tuple[int, int]]:
    """For each character, and the end: where it starts, and where the one before it ended."""
    found, place = [], 0
    for char in divided:
        end = place
        if char != " ":
            # spaces are made one, and control characters are left out
            while text[place : place + 1] not in (char, "") and _may_be_lost(text[place]):
                place += 1
            if text[place : place + 1] != char:
                raise CorpusError(
                    f"Dividing a context into words has changed its text at {text[end:][:40]!r}, "
                    "so that answers cannot be found in it. Leave the example out."
                )
        found.append((place, end))
        place += char != " "
    return [*found, (place, place)]


def _may_be_lost(char: str) -> bool:
    return char.isspace() or not char.isprintable()


@singledispatch
def _divided(example: Any, first: Divide, second: Divide) -> Any:
    """One example; of a kind that gives words, as it is."""
    del first, second
    return example


@_divided.register(Classified)
@_divided.register(Translated)
@_divided.register(Mined)
@_divided.register(Likeness)
def _of_two_texts(example: Any, first: Divide, second: Divide) -> Any:
    return replace(
        example,
        first=None if example.first is None else first(example.first),
        second=None if example.second is None else second(example.second),
    )


@_divided.register(Question)
def _question(example: Question, first: Divide, second: Divide) -> Question:
    asked = replace(example, question=first(example.question))
    context = second(example.context)
    if context == example.context:
        return asked
    return DividedQuestion(
        id=asked.id,
        question=asked.question,
        context=asked.context,
        answers=asked.answers,
        divided=context,
    )


@_divided.register(Choice)
def _choice(example: Choice, first: Divide, second: Divide) -> Choice:
    choices = tuple(map(second, example.choices))
    return replace(example, premise=first(example.premise), choices=choices)


@_divided.register(Entry)
def _entry(example: Entry, first: Divide, second: Divide) -> Entry:
    translations = tuple(map(second, example.translations))
    return replace(example, word=first(example.word), translations=translations)


@_divided.register(Analogy)
def _analogy(example: Analogy, first: Divide, second: Divide) -> Analogy:
    del second
    return replace(
        example, a=first(example.a), b=first(example.b), c=first(example.c), d=first(example.d)
    )


@_divided.register(Fact)
def _fact(example: Fact, first: Divide, second: Divide) -> Fact:
    """Answers too: what a model says is spelled as what it has read."""
    del second
    prompt = first(example.prompt.replace(OBJECT, _STANDS_FOR_OBJECT))
    return replace(
        example,
        prompt=prompt.replace(_STANDS_FOR_OBJECT, OBJECT),
        answers=tuple(map(first, example.answers)),
        candidates=tuple(map(first, example.candidates)),
    )
