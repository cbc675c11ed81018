"""The data of an evaluation: splits to score, their examples, and values as `Score`s."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError
from isoglot.evaluation.exported import SentenceModule
from isoglot.evaluation.settings import FeatureConfig
from isoglot.intervals import Measured, measure, to_score
from isoglot.languages import language_sides
from isoglot.models.objective_heads import ObjectiveHead
from isoglot.results import Score
from isoglot.tasks.base import DataFolders, Task, TaskSplit, name_folders
from isoglot.tasks.language_sets import expand_languages, is_selected
from isoglot.tasks.pretokenized import pretokenize_examples
from isoglot.tasks.unread import missing_note

if TYPE_CHECKING:
    from collections.abc import Collection

    from isoglot.models.encoder import Encoder  # noqa: TC004 (a type only)


def splits_to_score(
    task: Task[Any, Any], data: DataFolders, languages: Collection[str] | None
) -> list[TaskSplit]:
    """The test split of each language, or its dev split if it has no test split.

    `languages` are codes, or names of sets (`isoglot.tasks.language_sets`); none: all.
    """
    codes = None if languages is None else expand_languages(languages)
    found: dict[str, TaskSplit] = {}
    for split in task.splits_in(data):
        if split.name == "test" or (split.name == "dev" and split.language not in found):
            found[split.language] = split
    if not found:
        raise CorpusError(
            f"{name_folders(data)} has no files of {task.name}. Name their folder with --data; "
            f"docs/tasks.md shows its layout. {missing_note(task, data)}".rstrip()
        )
    return [split for language, split in found.items() if is_selected(language, codes)]


@dataclass(frozen=True, slots=True)
class ScoringJob:
    """One split of a task, to be scored with a loaded model: what every scorer reads."""

    encoder: Encoder
    tokenizer: Any
    task: Task[Any, Any]
    split: TaskSplit
    settings: FeatureConfig
    pretokenization: Pretokenizer = field(default_factory=lambda: Pretokenizer({}))
    """Pretokenization of the model's training text."""
    exported: SentenceModule = field(default_factory=SentenceModule)
    """The sentence vectors that the model folder gives its users."""
    loaded: Sequence[Any] | None = None
    """The examples of the split, if they have been read."""
    note: Callable[[str], None] | None = None
    """Called with a sentence about texts that are cut, have no vector or no language embedding."""
    heads: Mapping[str, ObjectiveHead] = field(default_factory=dict)
    """Objective -> its trained head, for the objectives whose heads the model folder has."""

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of the first and the second text of an example; one language: twice."""
        return language_sides(self.split.language)

    def tell(self, message: str) -> None:
        """Call `note` with a sentence about this split."""
        if self.note is not None:
            self.note(f"{self.task.name} {self.split.language}: {message}")

    def examples(self) -> list[Any]:
        """At most `limit` examples of the split."""
        if self.loaded is not None:
            return list(self.loaded)
        return self.task.limited(self.read(self.split), self.settings.limit)

    def read(self, split: TaskSplit) -> list[Any]:
        """The examples of a split, their texts pretokenized as the model's training text was."""
        return read_split(self.task, split, self.pretokenization)

    def values(self, examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, Measured]:
        """Metric -> value of predictions."""
        return measure(self.task, examples, predictions, self.split.language)

    def scores(self, values: Mapping[str, Measured], *, layer: int | None = None) -> list[Score]:
        """The metrics of one layer as `Score`s; the task says of which ones lower is better."""
        task = self.task
        lower = {metric.name for metric in task.metrics if not metric.higher_is_better}
        return [
            to_score(
                measured,
                Score(
                    task=task.name,
                    version=task.version,
                    language=self.split.language,
                    metric=name,
                    value=measured.value,
                    count=measured.count,
                    higher_is_better=name not in lower,
                    layer=layer,
                    scenario=self.settings.scenario(task.kind),
                ),
                keep_outcomes=name == task.metrics[0].name,
            )
            for name, measured in values.items()
        ]


def read_split(task: Task[Any, Any], split: TaskSplit, pretokenization: Pretokenizer) -> list[Any]:
    """The examples of a split, their texts pretokenized; a split without examples is refused."""
    examples = task.read(split)
    if not examples:
        names = ", ".join(map(str, split.files))
        raise CorpusError(
            f"There are no examples of {task.name} in {names}. Fetch it again, or leave "
            f"{split.language} out."
        )
    return pretokenize_examples(examples, split.language, pretokenization)
