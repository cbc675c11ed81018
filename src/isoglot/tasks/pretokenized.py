"""Pretokenized examples: texts split into words for models that were trained on split text.

`pretokenize_examples` takes the examples of one part and its language code (`sw`; for two texts
`en-sw`) and splits each text by the rules of its language. Words that a task gives (tags,
alignments) stay as they are, because labels refer to them. The context of a question stays too,
because answers are character offsets in it: `split_context` is the text that the model reads, and
`OffsetMap` converts its offsets to those of the original.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial, singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.errors import CorpusError
from isoglot.languages import plain_code
from isoglot.tasks.examples import (
    OBJECT,
    Analogy,
    BitextEntry,
    Fact,
    LabeledText,
    LexiconEntry,
    MultipleChoice,
    Question,
    RatedWordPair,
    SentencePair,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isoglot.corpus.tokenization.pretokenization import Pretokenizer
    from isoglot.types import IntArray

    Split = Callable[[str], str]

_OBJECT_PLACEHOLDER = "Qxyobjectyxq"
"""Stands for `[Y]` during pretokenization, which would split the brackets off."""


def pretokenize_examples(
    examples: Sequence[Any], language: str, pretokenization: Pretokenizer
) -> list[Any]:
    """The examples of a part, each text split into words by the rules of its language."""
    if not pretokenization.methods:
        return list(examples)
    first, _, second = language.partition("-")
    split_first, split_second = (
        # cached: contexts and premises repeat
        cache(partial(pretokenize_text, language=code, pretokenization=pretokenization))
        for code in (first, second or first)
    )
    return [_pretokenized(example, split_first, split_second) for example in examples]


def pretokenize_text(text: str, language: str, pretokenization: Pretokenizer) -> str:
    """A text split into words; `zh` also finds the corpus's rules for `zho` or `zh-Hans`."""
    if language not in pretokenization.methods:
        plain = plain_code(language)
        same = (code for code in pretokenization.methods if plain_code(code) == plain)
        language = next(same, language)
    return pretokenization.apply(text, language)


class OffsetMap:
    """Character offsets of a pretokenized text -> character offsets of the original."""

    def __init__(self, text: str, pretokenized: str) -> None:
        self._starts, self._ends = (
            np.array(offsets, np.int32)
            for offsets in zip(*_aligned(text, pretokenized), strict=True)
        )

    def to_original(self, spans: IntArray) -> IntArray:
        """(N, 2) starts and ends in the original text; an inserted space has no width."""
        starts = self._starts[spans[:, 0]]
        return np.stack([starts, np.maximum(starts, self._ends[spans[:, 1]])], axis=1)


def _aligned(text: str, pretokenized: str) -> list[tuple[int, int]]:
    """For each pretokenized character: its offset in the text, and the end of the one before."""
    offsets, place = [], 0
    for char in pretokenized:
        end = place
        if char != " ":
            # pretokenization collapses spaces and drops control characters
            while text[place : place + 1] not in (char, "") and _is_dropped(text[place]):
                place += 1
            if text[place : place + 1] != char:
                raise CorpusError(
                    f"Pretokenization changed a context at {text[end:][:40]!r}, so answers cannot "
                    "be located in it. Remove the example."
                )
        offsets.append((place, end))
        place += char != " "
    return [*offsets, (place, place)]


def _is_dropped(char: str) -> bool:
    return char.isspace() or not char.isprintable()


@singledispatch
def _pretokenized(example: Any, first: Split, second: Split) -> Any:
    """An example with its texts split; kinds that give words are returned unchanged."""
    del first, second
    return example


@_pretokenized.register(LabeledText)
@_pretokenized.register(SentencePair)
@_pretokenized.register(BitextEntry)
@_pretokenized.register(RatedWordPair)
def _of_two_texts(example: Any, first: Split, second: Split) -> Any:
    return replace(
        example,
        first=None if example.first is None else first(example.first),
        second=None if example.second is None else second(example.second),
    )


@_pretokenized.register(Question)
def _question(example: Question, first: Split, second: Split) -> Question:
    question, context = first(example.question), second(example.context)
    split = None if context == example.context else context
    return replace(example, question=question, split_context=split)


@_pretokenized.register(MultipleChoice)
def _choice(example: MultipleChoice, first: Split, second: Split) -> MultipleChoice:
    choices = tuple(map(second, example.choices))
    return replace(example, premise=first(example.premise), choices=choices)


@_pretokenized.register(LexiconEntry)
def _entry(example: LexiconEntry, first: Split, second: Split) -> LexiconEntry:
    translations = tuple(map(second, example.translations))
    return replace(example, word=first(example.word), translations=translations)


@_pretokenized.register(Analogy)
def _analogy(example: Analogy, first: Split, second: Split) -> Analogy:
    del second
    return replace(
        example, a=first(example.a), b=first(example.b), c=first(example.c), d=first(example.d)
    )


@_pretokenized.register(Fact)
def _fact(example: Fact, first: Split, second: Split) -> Fact:
    """Answers too: a model predicts words as its training text spelled them."""
    del second
    prompt = first(example.prompt.replace(OBJECT, _OBJECT_PLACEHOLDER))
    return replace(
        example,
        prompt=prompt.replace(_OBJECT_PLACEHOLDER, OBJECT),
        answers=tuple(map(first, example.answers)),
        candidates=tuple(map(first, example.candidates)),
    )
