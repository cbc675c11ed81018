"""Extractive question answering in many languages: MLQA, XQuAD and TyDi QA (gold passage)."""

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
from isoglot.languages import name_of
from isoglot.tasks.layouts import Layout, hf_layouts
from isoglot.tasks.squad import QuestionAnsweringTask, read_questions

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.tasks.base import TaskSplit
    from isoglot.tasks.examples import Question
    from isoglot.tasks.squad import Normalize

_MLQA_ARTICLES = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",  # the first alternative never matches; it is the official expression
    "hi": None,
    "zh": None,
}
_HAN = re.compile("[\u4e00-\u9fa5]")
_TYDIQA_LANGUAGES = ("ar", "bn", "en", "fi", "id", "ko", "ru", "sw", "te")
"""Of the gold-passage task; the primary task has ja and th too."""


class Mlqa(QuestionAnsweringTask):
    """MLQA (Lewis et al. 2020): ar de en es hi vi zh, 504 to 1,148 dev, 4,918 to 11,590 test.

    A split is named after the languages of its question and its paragraph, `de-en` (G-XLT), or `de`
    if both are German; it is scored by the rules of the paragraph's language, in which the answers
    are.
    """

    name = "mlqa"
    languages = "ar de en es hi vi zh"
    summary = "answers in a paragraph, also across languages (G-XLT)"
    paper = "Lewis et al. 2020"
    license = "CC BY-SA 3.0"
    layouts: ClassVar = (
        Layout("mlqa/{split}-context-{other}-question-{language}.json"),
        Layout("MLQA_V1/{split}/{split}-context-{other}-question-{language}.json"),
        *hf_layouts("mlqa", "mlqa.{other}.{language}"),
    )

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        found = []
        for split in super().splits(folder):
            question, _, context = split.language.partition("-")
            found.append(replace(split, language=question) if question == context else split)
        return found

    @override
    def normalizer(self, language: str) -> Normalize:
        of_paragraph = language.rpartition("-")[2]
        if of_paragraph not in _MLQA_ARTICLES:
            known = ", ".join(_MLQA_ARTICLES)
            raise CorpusError(f"MLQA has no rules for {of_paragraph!r}: {known}.")
        return partial(normalize_mlqa, language=of_paragraph)


def normalize_mlqa(text: str, *, language: str) -> str:
    """MLQA's normalization: lower case, no Unicode punctuation, none of the language's articles.

    Chinese is split into characters; words are separated by single spaces.
    """
    marks = _punctuation()
    text = "".join(character for character in text.lower() if character not in marks)
    articles = _MLQA_ARTICLES[language]
    if articles is not None:
        text = re.sub(articles, " ", text)
    if language == "zh":
        text = _HAN.sub(r" \g<0> ", text)
    return " ".join(text.split())


@cache
def _punctuation() -> frozenset[str]:
    found = (chr(code) for code in range(sys.maxunicode))
    return frozenset(c for c in found if unicodedata.category(c)[0] == "P") | {*string.punctuation}


class Xquad(QuestionAnsweringTask):
    """XQuAD (Artetxe et al. 2020): 1,190 questions in each of 12 languages, test only.

    SQuAD's questions, translated by professionals. Scored by the SQuAD 1.1 script without changes,
    English articles included.
    """

    name = "xquad"
    languages = "12"
    summary = "answers in a paragraph, translated from SQuAD"
    paper = "Artetxe et al. 2020"
    license = "CC BY-SA 4.0"
    layouts: ClassVar = (
        Layout("xquad/{language}.json", split="test"),
        Layout("xquad/xquad.{language}.json", split="test"),
        *hf_layouts("xquad", "xquad.{language}", test="validation"),
    )


class TydiQa(QuestionAnsweringTask):
    """TyDiQA-GoldP (Clark et al. 2020): nine languages, 49,881 train and 5,077 dev questions.

    Questions were asked in each language by people who did not know the answer. Dev questions: ar
    921, en 440, fi 782, ko 276, ru 812, sw 499. Scored by the SQuAD 1.1 script. The official
    average leaves out English; tables here name the languages that they average.
    """

    name = "tydiqa"
    languages = "9"
    summary = "answers in a paragraph, asked in each language"
    paper = "Clark et al. 2020"
    license = "Apache-2.0, text CC BY-SA 3.0"
    layouts: ClassVar = (
        Layout("tydiqa/{language}.{split}.json"),
        Layout("tydiqa/tydiqa-goldp-v1.1-{split}/tydiqa-goldp-{split}-{name}.json"),
        Layout("tydiqa/tydiqa.goldp.{language}.{split}.json"),
        Layout("tydiqa/tydiqa-goldp-v1.1-{split}.json", _TYDIQA_LANGUAGES),
        *hf_layouts("tydiqa", "secondary_task", _TYDIQA_LANGUAGES),
    )

    @override
    def read(self, split: TaskSplit) -> list[Question]:
        """A file may have all languages; question ids then start with a language (`swahili-`)."""
        others = {name_of(code).lower() for code in _TYDIQA_LANGUAGES if code != split.language}
        return [
            question
            for path in split.files
            for question in read_questions(path)
            if question.id.partition("-")[0] not in others
        ]
