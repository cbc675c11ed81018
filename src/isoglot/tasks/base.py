"""What a task is: files in, examples out, and the official score of predictions. It never trains.

A task is one file: it finds its files under a data folder (the original distribution's names, or
those of a pack that keeps one file a language), reads them into examples of its kind, refuses a
damaged one by file and line, and scores predictions as the official script does.

    folder --parts--> parts --read--> examples --(a model)--> predictions
                                              `------------score------------'--> metrics
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Sequence

Split = Literal["train", "dev", "test"]
Kind = Literal[
    "classify",
    "tag",
    "span",
    "choice",
    "retrieval",
    "mining",
    "alignment",
    "lexicon",
    "analogy",
    "probe",
    "similarity",
]
"""What must be done with an example: the first four are fine-tuned, the others read features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number that a task gives."""

    name: str
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """One language and split of a task: what `parts` finds."""

    language: str
    """`sw`; for what has two languages, `en-sw` (question and context, or the two sides)."""
    split: Split
    files: tuple[Path, ...]


E = TypeVar("E")
"""The task's examples (see `examples`)."""
P = TypeVar("P")
"""What a model must say of one example."""


class Task(ABC, Generic[E, P]):
    """One task. Its docstring has the source, the licence, and how many examples there are."""

    name: ClassVar[str]
    line: ClassVar[str]
    """One line for tables: what is asked."""
    languages: ClassVar[str]
    """For tables: the distribution's languages, or how many there are."""
    kind: ClassVar[Kind]
    version: ClassVar[int]
    """Rises when scores stop being comparable with earlier ones."""
    metrics: ClassVar[tuple[Metric, ...]]
    """The first is the one that tables show."""
    paper: ClassVar[str]
    licence: ClassVar[str]

    @abstractmethod
    def parts(self, folder: Path) -> list[Part]:
        """The languages and splits whose files lie under a data folder."""

    @abstractmethod
    def read(self, part: Part) -> list[E]:
        """The examples of one part, in file order.

        Raises:
            CorpusError: a file is damaged; the message names it and the line.
        """

    @abstractmethod
    def score(
        self, examples: Sequence[E], predictions: Sequence[P], language: str
    ) -> dict[str, float]:
        """Each metric's value, as the official script computes it."""

    def part(self, folder: Path, language: str, split: Split) -> Part:
        """One part, or a sentence that says what there is instead."""
        found = self.parts(folder)
        for part in found:
            if (part.language, part.split) == (language, split):
                return part
        have = ", ".join(f"{part.language} {part.split}" for part in found) or "nothing"
        raise CorpusError(f"{folder} has no {split} part of {self.name} for {language!r}: {have}.")
