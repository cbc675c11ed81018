"""Small tasks in the tiny corpus's languages: examples made in code, no files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.finetuning.finetune import train_jobs
from isoglot.finetuning.jobs import SaveConfig, jobs_to_do
from isoglot.finetuning.plan import FinetunePlan
from isoglot.finetuning.settings import FinetuneRequest
from isoglot.model_results import fingerprint
from isoglot.results import Score
from isoglot.tasks.base import Metric, Split, Task, TaskSplit
from isoglot.tasks.examples import Answer, LabeledText, Question
from tests.tiny_corpus import LANGUAGES, words

SPLITS: tuple[Split, ...] = ("train", "dev", "test")


class PairTask(Task[LabeledText, str]):
    """Is the first sentence's first word the second's? Row i means the same in all languages."""

    name = "pairs"
    line = ""
    kind: ClassVar = "text-classification"
    version = 1
    metrics: ClassVar = (Metric(name="accuracy"),)
    paper = ""
    license = ""
    number = 12

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        """What was scored, for tests that look over its shoulder."""

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        return [TaskSplit(code, split, ()) for code in LANGUAGES for split in SPLITS]

    @override
    def read(self, part: TaskSplit) -> list[LabeledText]:
        rng = np.random.default_rng(SPLITS.index(part.name))
        lexicon = words(part.language)
        examples = []
        for number in range(self.number):
            first, second = rng.integers(0, 120, (2, 5))
            label = number % 2
            if label:
                second[0] = first[0]
            examples.append(
                LabeledText(
                    id=f"{part.name} {number}",
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
    def read(self, part: TaskSplit) -> list[LabeledText]:
        from dataclasses import replace

        return [replace(e, id=f"{part.language} {e.id}") for e in super().read(part)]


class DevOnlyTask(PairTask):
    """No test part."""

    name = "dev-only"

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        return [part for part in super().splits(folder) if part.name != "test"]


class TwoLanguageTask(PairTask):
    """Also scored on texts of two languages, as MLQA is."""

    name = "two-languages"

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        return [
            *super().splits(folder),
            TaskSplit("aa-bb", "dev", ()),
            TaskSplit("aa-bb", "test", ()),
        ]

    @override
    def read(self, part: TaskSplit) -> list[LabeledText]:
        return super().read(TaskSplit(part.language.partition("-")[0], part.name, ()))


class UntrainedTask(PairTask):
    """Scored in all languages, trained on in one."""

    name = "untrained"

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        every = super().splits(folder)
        return [part for part in every if part.name != "train" or part.language == "bb"]


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


def finetuned(
    folder: Path,
    task: Task[Any, Any],
    data: Path,
    request: FinetuneRequest,
    train_task: Task[Any, Any] | None = None,
    *,
    finished: Sequence[Score] = (),
    save_models: Path | None = None,
    save_predictions: Path | None = None,
    **options: Any,
) -> Iterator[list[Score]]:
    """The scores of each training of a task."""
    plan = FinetunePlan(task, data, request, train_task)
    save = SaveConfig(models=save_models, predictions=save_predictions)
    jobs = jobs_to_do(plan, folder, fingerprint(folder), finished=finished, save=save)
    return train_jobs(folder, plan, list(jobs), **options)
