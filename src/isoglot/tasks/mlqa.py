"""MLQA: questions and paragraphs in seven languages, also in two different ones (G-XLT).

Answers are normalised as the official script does for the language of the paragraph: all Unicode
punctuation goes, so do that language's articles; Chinese is compared character by character.
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.squad import QuestionTask

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.tasks.base import Part
    from isoglot.tasks.squad import Normalize

_ARTICLES = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",  # the first alternative never matches; it is the official expression
    "hi": None,
    "zh": None,
}
_HAN = re.compile("[\u4e00-\u9fa5]")


@cache
def _punctuation() -> frozenset[str]:
    found = (chr(code) for code in range(sys.maxunicode))
    return frozenset(c for c in found if unicodedata.category(c)[0] == "P") | {*string.punctuation}


def normalize_mlqa(text: str, *, language: str) -> str:
    """Lower case, no punctuation, none of the language's articles, words by single spaces."""
    marks = _punctuation()
    text = "".join(character for character in text.lower() if character not in marks)
    articles = _ARTICLES[language]
    if articles is not None:
        text = re.sub(articles, " ", text)
    if language == "zh":
        text = _HAN.sub(r" \g<0> ", text)
    return " ".join(text.split())


class Mlqa(QuestionTask):
    """MLQA (Lewis et al. 2020): ar de en es hi vi zh, 504 to 1,148 dev, 4,918 to 11,590 test.

    CC BY-SA 3.0. A part is named after its question and its paragraph, `de-en`, or `de` where both
    are German; it is scored by the paragraph's language, in which the answers are.
    """

    name = "mlqa"
    languages = "ar de en es hi vi zh"
    line = "answers in a paragraph, also across languages (G-XLT)"
    paper = "Lewis et al. 2020"
    licence = "CC BY-SA 3.0"
    layouts: ClassVar = (
        Layout("mlqa/{split}-context-{other}-question-{language}.json"),
        Layout("MLQA_V1/{split}/{split}-context-{other}-question-{language}.json"),
        *hub("mlqa", "mlqa.{other}.{language}"),
    )

    @override
    def parts(self, folder: Path) -> list[Part]:
        return [_named_once(part) for part in super().parts(folder)]

    @override
    def normalizer(self, language: str) -> Normalize:
        of_paragraph = language.rpartition("-")[2]
        if of_paragraph not in _ARTICLES:
            raise CorpusError(f"MLQA has no rules for {of_paragraph!r}: {', '.join(_ARTICLES)}.")
        return partial(normalize_mlqa, language=of_paragraph)


def _named_once(part: Part) -> Part:
    question, _, context = part.language.partition("-")
    return replace(part, language=question) if question == context else part
