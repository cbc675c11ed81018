"""Classification: what the tasks of sentences, pairs and reviews share."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.examples import Classified
from isoglot.tasks.finding import FileTask
from isoglot.tasks.lines import damaged

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.tasks.base import Kind

NLI_LABELS = ("entailment", "neutral", "contradiction")


def accuracy(true: Sequence[object], said: Sequence[object]) -> float:
    """The share of predictions that are right; 0 where there are none."""
    right = sum(one == other for one, other in zip(true, said, strict=True))
    return right / len(true) if true else 0.0


class ClassifyTask(FileTask[Classified, str]):
    """A task with a fixed set of labels, scored by accuracy."""

    kind: ClassVar[Kind] = "classify"
    version = 1
    metrics = (Metric(name="accuracy"),)
    labels: ClassVar[tuple[str, ...]]
    """All labels, in the order of a classifier's outputs."""

    def label(self, path: Path, number: int, said: str) -> str:
        """A label as a file has it, checked."""
        if said not in self.labels:
            raise damaged(path, number, f"has the label {said!r}, not {' or '.join(self.labels)}.")
        return said

    @override
    def score(
        self, examples: Sequence[Classified], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        return {"accuracy": accuracy([example.label for example in examples], predictions)}
