"""What a task is: files in, examples out, and the official score of predictions. It never trains.

A task finds its files under a data folder, reads them into examples (`isoglot.tasks.examples`),
refuses a damaged file by name and line, and scores predictions as the official script does.

    folder --splits--> TaskSplit --read--> examples --(a model)--> predictions
                                              `----------score----------'--> metrics

Tasks that read files derive from `isoglot.tasks.layouts.FileTask`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from isoglot.errors import CorpusError
from isoglot.fetching.registry import how_to_get

if TYPE_CHECKING:
    from collections.abc import Sequence

Split = Literal["train", "dev", "test"]
FineTunedKind = Literal[
    "text-classification", "token-classification", "question-answering", "multiple-choice"
]
FeatureKind = Literal[
    "retrieval", "mining", "alignment", "lexicon", "analogy", "probe", "similarity", "linking"
]
TaskKind = FineTunedKind | FeatureKind
"""What a model does with an example: it is fine-tuned, or its features are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number that a task gives."""

    name: str
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class TaskSplit:
    """One language and split of a task, with its files."""

    language: str
    """`sw`; `en-sw` for two languages (question and context, or the two sides of a translation)."""
    name: Split
    files: tuple[Path, ...]


DataFolders = Path | tuple[Path, ...]
"""One folder of tasks' files or several: a split is taken from the first that has it."""


X = TypeVar("X")


def subsample(examples: list[X], limit: int | None) -> list[X]:
    """At most `limit` examples: one from each of as many equal parts of the list, at random.

    The parts are there because files are often sorted by section or relation; the random place in
    each is, because some have a period: every third pair of XNLI has the same label. Lists of one
    length, as of the languages of a parallel test set, lose the same examples.
    """
    if limit is None or limit >= len(examples):
        return examples
    random = Random(limit)  # noqa: S311 (no secret)
    bounds = [part * len(examples) // limit for part in range(limit + 1)]
    return [
        examples[start + int(random.random() * (end - start))] for start, end in pairwise(bounds)
    ]


def data_folders(data: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """The data folders that an argument names."""
    return (Path(data),) if isinstance(data, str | Path) else tuple(map(Path, data))


def name_folders(data: DataFolders) -> str:
    """The data folders, for messages."""
    return " and ".join(map(str, data_folders(data)))


E = TypeVar("E")
"""The class of a task's examples (`isoglot.tasks.examples`)."""
P = TypeVar("P")
"""The prediction for one example."""


class Task(ABC, Generic[E, P]):
    """One task. Its docstring has the source and the number of examples."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for tables: what is predicted."""
    languages: ClassVar[str]
    """For tables: the languages of the data set, or their number."""
    kind: ClassVar[TaskKind]
    version: ClassVar[int]
    """Raised when scores are no longer comparable with earlier ones."""
    metrics: ClassVar[tuple[Metric, ...]]
    """The first is the one that tables show."""
    paper: ClassVar[str]
    license: ClassVar[str]

    @abstractmethod
    def splits(self, folder: Path) -> list[TaskSplit]:
        """The languages and splits whose files are under a data folder."""

    @abstractmethod
    def read(self, split: TaskSplit) -> list[E]:
        """The examples of one split, in file order; a damaged line is a `CorpusError`."""

    @abstractmethod
    def score(
        self, examples: Sequence[E], predictions: Sequence[P], language: str
    ) -> dict[str, float]:
        """The value of each metric, as the official script computes it."""

    def limited(self, examples: list[E], limit: int | None) -> list[E]:
        """The examples of a split, of which at most `limit` are scored."""
        return subsample(examples, limit)

    def splits_in(self, data: DataFolders) -> list[TaskSplit]:
        """The languages and splits of all data folders; a folder that is missing is refused."""
        found: dict[tuple[str, Split], TaskSplit] = {}
        for folder in data_folders(data):
            splits = self.splits(folder)
            if not splits and not folder.is_dir():
                hint = how_to_get(self.name, folder)
                raise CorpusError(
                    f"{folder}: there is no such folder. Name the folder of the tasks' files with "
                    f"--data (docs/tasks.md). {hint}".rstrip()
                )
            for split in splits:
                found.setdefault((split.language, split.name), split)
        return list(found.values())

    def find_split(self, data: DataFolders, language: str, name: Split) -> TaskSplit:
        """One split of one language; the error lists the splits that the folders have."""
        found = self.splits_in(data)
        for split in found:
            if (split.language, split.name) == (language, name):
                return split
        have = ", ".join(f"{split.language} {split.name}" for split in found) or "nothing"
        raise CorpusError(
            f"{name_folders(data)} has no {name} split of {self.name} for {language!r}: {have}."
        )


def accuracy(true: Sequence[object], predicted: Sequence[object]) -> float:
    """The share of predictions that are correct; 0 without predictions."""
    right = sum(one == other for one, other in zip(true, predicted, strict=True))
    return right / len(true) if true else 0.0


def f1_scores(num_right: int, *, num_predicted: int, num_gold: int) -> dict[str, float]:
    """F1, precision and recall from counts; 0 where the denominator is 0."""
    precision = num_right / num_predicted if num_predicted else 0.0
    recall = num_right / num_gold if num_gold else 0.0
    both = precision + recall
    f1 = 2 * precision * recall / both if both else 0.0
    return {"f1": f1, "precision": precision, "recall": recall}
