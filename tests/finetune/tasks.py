"""Small tasks in the tiny corpus's languages: examples made in code, no files."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from typing_extensions import override

from isoglot.tasks.base import Metric, Part, Split, Task
from isoglot.tasks.examples import Answer, Classified, Question
from tests.tiny_corpus import LANGUAGES, words

SPLITS: tuple[Split, ...] = ("train", "dev", "test")


class PairTask(Task[Classified, str]):
    """Is the first sentence's first word the second's? Row i means the same in all languages."""

    name = "pairs"
    line = ""
    kind: ClassVar = "classify"
    version = 1
    metrics: ClassVar = (Metric(name="accuracy"),)
    paper = ""
    licence = ""
    number = 12

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        """What was scored, for tests that look over its shoulder."""

    @override
    def parts(self, folder: Path) -> list[Part]:
        return [Part(code, split, ()) for code in LANGUAGES for split in SPLITS]

    @override
    def read(self, part: Part) -> list[Classified]:
        rng = np.random.default_rng(SPLITS.index(part.split))
        lexicon = words(part.language)
        examples = []
        for number in range(self.number):
            first, second = rng.integers(0, 120, (2, 5))
            label = number % 2
            if label:
                second[0] = first[0]
            examples.append(
                Classified(
                    id=f"{part.split} {number}",
                    first=" ".join(lexicon[i] for i in first),
                    second=" ".join(lexicon[i] for i in second),
                    label="same" if label else "other",
                )
            )
        return examples

    @override
    def score(self, examples, predictions, language) -> dict[str, float]:
        self.asked.append((language, examples[0].id.split()[0]))
        pairs = zip(examples, predictions, strict=True)
        return {"accuracy": sum(e.label == p for e, p in pairs) / len(examples)}


class OwnTask(PairTask):
    """Every language has rows of its own."""

    name = "own"

    @override
    def read(self, part: Part) -> list[Classified]:
        from dataclasses import replace

        return [replace(e, id=f"{part.language} {e.id}") for e in super().read(part)]


class DevOnlyTask(PairTask):
    """No test part."""

    name = "dev-only"

    @override
    def parts(self, folder: Path) -> list[Part]:
        return [part for part in super().parts(folder) if part.split != "test"]


class TwoLanguageTask(PairTask):
    """Also scored on texts of two languages, as MLQA is."""

    name = "two-languages"

    @override
    def parts(self, folder: Path) -> list[Part]:
        return [*super().parts(folder), Part("aa-bb", "dev", ()), Part("aa-bb", "test", ())]

    @override
    def read(self, part: Part) -> list[Classified]:
        return super().read(Part(part.language.partition("-")[0], part.split, ()))


class UntrainedTask(PairTask):
    """Scored in all languages, trained on in one."""

    name = "untrained"

    @override
    def parts(self, folder: Path) -> list[Part]:
        every = super().parts(folder)
        return [part for part in every if part.split != "train" or part.language == "bb"]


def questions(number: int = 8, *, length: int = 40, seed: int = 0) -> list[Question]:
    """Questions on long contexts of the tiny corpus's words."""
    rng = np.random.default_rng(seed)
    lexicon = words("aa")
    made = []
    for index in range(number):
        context = [lexicon[i] for i in rng.integers(0, 120, length)]
        first = int(rng.integers(0, length - 3))
        text = " ".join(context[first : first + int(rng.integers(1, 4))])
        start = len(" ".join(context[:first])) + (first > 0)
        made.append(
            Question(
                id=str(index),
                question=" ".join(lexicon[i] for i in rng.integers(0, 120, 3)),
                context=" ".join(context),
                answers=(Answer(text=text, start=start),),
            )
        )
    return made
