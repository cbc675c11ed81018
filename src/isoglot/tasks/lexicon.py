"""Bilingual dictionaries: which word of another language translates this one?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.examples import Entry
from isoglot.tasks.finding import FileTask, Layout
from isoglot.tasks.lines import damaged, numbered_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.tasks.base import Kind, Part


class LexiconTask(FileTask[Entry, "Sequence[str]"]):
    """Two words on a line; predicted are the other language's words, best first."""

    kind: ClassVar[Kind] = "lexicon"
    version = 1
    metrics = (Metric(name="p@1"), Metric(name="p@5"))

    @override
    def read(self, part: Part) -> list[Entry]:
        entries: dict[str, list[str]] = {}
        for path in part.files:
            for number, line in numbered_lines(path):
                word, translation = _two_words(path, number, line)
                entries.setdefault(word, []).append(translation)
        return [
            Entry(word=word, translations=tuple(dict.fromkeys(translations)))
            for word, translations in entries.items()
        ]

    @override
    def score(
        self, examples: Sequence[Entry], predictions: Sequence[Sequence[str]], language: str
    ) -> dict[str, float]:
        right = {1: 0, 5: 0}
        for entry, ranking in zip(examples, predictions, strict=True):
            for best in right:
                right[best] += not set(ranking[:best]).isdisjoint(entry.translations)
        return {f"p@{best}": number / len(examples) for best, number in right.items() if examples}


class XlingEval(LexiconTask):
    """xling-eval (Glavaš et al. 2019): English with de fi fr hr it ru tr.

    5,000 train and 2,000 test pairs, in one direction mostly. No licence is stated. One
    translation for each word; the train part is the 5k file.
    """

    name = "xling"
    languages = "7 with en"
    line = "translations of frequent words"
    paper = "Glavaš et al. 2019"
    licence = "unstated"
    layouts: ClassVar = (
        Layout("bli/xling-eval/*/yacle.test.freq.2k.{language}-{other}.tsv", split="test"),
        Layout("bli/xling-eval/*/yacle.train.freq.5k.{language}-{other}.tsv", split="train"),
    )


class Muse(LexiconTask):
    """MUSE's dictionaries (Lample et al. 2018): 110 pairs of languages. CC BY-NC 4.0.

    The test part is words 5,000 to 6,500 by frequency, train the first 5,000; a word may have
    several translations.
    """

    name = "muse"
    languages = "45 with en"
    line = "translations of words, several right"
    paper = "Lample et al. 2018"
    licence = "CC BY-NC 4.0"
    layouts: ClassVar = (
        Layout("muse/{language}-{other}.5000-6500.txt", split="test"),
        Layout("muse/{language}-{other}.0-5000.txt", split="train"),
    )


def _two_words(path: Path, number: int, line: str) -> tuple[str, str]:
    words = line.split("\t") if "\t" in line else line.split()
    if len(words) != 2 or not all(word.strip() for word in words):
        raise damaged(path, number, f"{line!r} is not two words.")
    return words[0].strip(), words[1].strip()
