"""Lexical tasks: bilingual lexicon induction, word analogies and word similarity."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.tasks.base import Metric, TaskSplit
from isoglot.tasks.data_files import file_error, numbered_lines
from isoglot.tasks.examples import Analogy, LexiconEntry, RatedWordPair
from isoglot.tasks.layouts import FileTask, Layout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.types import FloatArray


class LexiconTask(FileTask[LexiconEntry, "Sequence[str]"]):
    """A bilingual dictionary; predicted are the words of the other language, best first."""

    kind = "lexicon"
    version = 1
    metrics = (Metric(name="p@1"), Metric(name="p@5"))

    @override
    def read(self, split: TaskSplit) -> list[LexiconEntry]:
        entries: dict[str, list[str]] = {}
        for path in split.files:
            for number, line in numbered_lines(path):
                words = line.split("\t") if "\t" in line else line.split()
                if len(words) != 2 or not all(word.strip() for word in words):
                    raise file_error(path, number, f"{line!r} is not two words.")
                entries.setdefault(words[0].strip(), []).append(words[1].strip())
        return [
            LexiconEntry(word=word, translations=tuple(dict.fromkeys(translations)))
            for word, translations in entries.items()
        ]

    @override
    def score(
        self, examples: Sequence[LexiconEntry], predictions: Sequence[Sequence[str]], language: str
    ) -> dict[str, float]:
        right = {1: 0, 5: 0}
        for entry, ranking in zip(examples, predictions, strict=True):
            for best in right:
                right[best] += not set(ranking[:best]).isdisjoint(entry.translations)
        return {f"p@{best}": number / len(examples) for best, number in right.items() if examples}


class XlingEval(LexiconTask):
    """xling-eval (Glavaš et al. 2019): English with de fi fr hr it ru tr.

    5,000 train and 2,000 test pairs, mostly in one direction. One translation for each word; the
    train split is the 5k file.
    """

    name = "xling"
    languages = "7 with en"
    summary = "translations of frequent words"
    paper = "Glavaš et al. 2019"
    license = "unstated"
    layouts: ClassVar = (
        Layout("bli/xling-eval/*/yacle.test.freq.2k.{language}-{other}.tsv", split="test"),
        Layout("bli/xling-eval/*/yacle.train.freq.5k.{language}-{other}.tsv", split="train"),
    )
    companions = ("bli/xling-eval/*/yacle.train.freq.*.{language}-{other}.tsv",)


class Muse(LexiconTask):
    """MUSE's dictionaries (Lample et al. 2018): 110 pairs of languages.

    The test split is words 5,000 to 6,500 by frequency, train the first 5,000.
    """

    name = "muse"
    languages = "45 with en"
    summary = "translations of words, several correct"
    paper = "Lample et al. 2018"
    license = "CC BY-NC 4.0"
    layouts: ClassVar = (
        Layout("muse/{language}-{other}.5000-6500.txt", split="test"),
        Layout("muse/{language}-{other}.0-5000.txt", split="train"),
    )
    companions = ("muse/{language}-{other}.txt",)


class AnalogyTask(FileTask[Analogy, str]):
    """Predicted is d; accuracy over all analogies and by section."""

    kind = "analogy"
    version = 1
    metrics = (Metric(name="accuracy"),)

    @override
    def score(
        self, examples: Sequence[Analogy], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        right: dict[str, list[bool]] = {"accuracy": []}
        for example, said in zip(examples, predictions, strict=True):
            right["accuracy"].append(said == example.d)
            right.setdefault(f"accuracy {example.section}", []).append(said == example.d)
        return {metric: sum(found) / len(found) for metric, found in right.items() if found}


class GoogleAnalogies(AnalogyTask):
    """Google's analogies (Mikolov et al. 2013): 19,544 in English, in 14 sections.

    Translated: de 18,552, es 14,764, fr 31,688, zh 953. From repositories under Apache-2.0 and
    LGPL. `a b c d` on a line; a line `: name` begins a section.
    """

    name = "analogy"
    languages = "de en es fr zh"
    summary = "a is to b as c is to d"
    paper = "Mikolov et al. 2013"
    license = "public test sets"
    layouts: ClassVar = (
        Layout("analogy/{language}.google.txt", split="test"),
        Layout("analogy/{language}.questions-words.txt", split="test"),
        Layout("analogy/questions-words.txt", ("en",), "test"),
    )

    @override
    def read(self, split: TaskSplit) -> list[Analogy]:
        examples = []
        section = ""
        for path in split.files:
            for number, line in numbered_lines(path):
                words = line.split()
                if words[:1] == [":"]:
                    section = " ".join(words[1:])
                    continue
                if len(words) != 4 or not section:
                    raise file_error(path, number, f"{line!r} is not four words of a section.")
                a, b, c, d = words
                examples.append(Analogy(a=a, b=b, c=c, d=d, section=section))
        return examples


class RoyalAnalogies(AnalogyTask):
    """Table 3 of MLM-GC: king - man + woman, in English, German and mixed, to Queen and to Königin.

    The 16 analogies of the table, without a file. The table shows the cosine of each, which is
    scored in addition to the accuracy.
    """

    name = "analogy-royal"
    languages = "de en"
    summary = "king - man + woman, English and German mixed"
    paper = "MLM-GC, Table 3"
    license = "none needed"

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        del folder
        return [TaskSplit("en-de", "test", ())]

    @override
    def read(self, split: TaskSplit) -> list[Analogy]:
        return [
            Analogy(a=man, b=king, c=woman, d=queen, section=f"{king}-{man}+{woman} {queen}")
            for king, man, woman, queen in product(
                ("King", "König"), ("Man", "Mann"), ("Woman", "Frau"), ("Queen", "Königin")
            )
        ]


class WordSimilarity(FileTask[RatedWordPair, float]):
    """SimLex-999, WordSim-353, RG-65 (65 pairs) and MEN (3,000 pairs), English: 4,417 pairs.

    Public test sets, from a repository under Apache-2.0. `word word score` on a line. Spearman's
    correlation within each set, and the mean of the sets.
    """

    name = "word-similarity"
    languages = "en"
    summary = "similarity of two words"
    kind = "similarity"
    version = 1
    metrics = (Metric(name="spearman"),)
    paper = "Hill et al. 2015; Finkelstein et al. 2002; Bruni et al. 2014"
    license = "public test sets"
    layouts: ClassVar = (Layout("word_similarity/{language}.*.txt", split="test"),)

    @override
    def read(self, split: TaskSplit) -> list[RatedWordPair]:
        return [
            _rated_pair(path, number, line)
            for path in split.files
            for number, line in numbered_lines(path)
        ]

    @override
    def score(
        self, examples: Sequence[RatedWordPair], predictions: Sequence[float], language: str
    ) -> dict[str, float]:
        sets: dict[str, list[tuple[float, float]]] = {}
        for example, predicted in zip(examples, predictions, strict=True):
            sets.setdefault(example.section, []).append((example.score, predicted))
        found = {f"spearman {name}": spearman(np.array(pairs)) for name, pairs in sets.items()}
        return {"spearman": float(np.mean(list(found.values()))), **found}


def spearman(pairs: FloatArray) -> float:
    """Correlation of the ranks of two columns; equal values share their mean rank."""
    ranks = np.stack([_ranks(column) for column in pairs.T])
    if (ranks.std(axis=1) == 0).any():
        return 0.0
    return float(np.asarray(np.corrcoef(ranks))[0, 1])


def _ranks(values: FloatArray) -> FloatArray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: FloatArray = (last - (counts - 1) / 2)[inverse]
    return ranks


def _rated_pair(path: Path, number: int, line: str) -> RatedWordPair:
    try:
        first, second, score = line.split()
        return RatedWordPair(
            first=first, second=second, score=float(score), section=path.name.split(".")[1]
        )
    except ValueError as error:
        raise file_error(path, number, f"{line!r} is not two words and a number.") from error
