"""The data of an evaluation: splits to score, their examples, and values as `Score`s."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError
from isoglot.evaluation.settings import FeatureConfig
from isoglot.results import Score
from isoglot.tasks.base import Task, TaskSplit
from isoglot.tasks.language_sets import expand_languages, is_selected
from isoglot.tasks.pretokenized import pretokenize_examples

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from isoglot.models.encoder import Encoder  # noqa: TC004 (a type only)

    PairsByName = dict[str, tuple[list[str], list[str]]]
    """Pair of languages (`en-de`) -> sentences of the first and of the second language."""

X = TypeVar("X")


def splits_to_score(
    task: Task[Any, Any], folder: Path, languages: Collection[str] | None
) -> list[TaskSplit]:
    """The test split of each language, or its dev split if it has no test split.

    `languages` are codes, or names of sets (`isoglot.tasks.language_sets`); none: all.
    """
    codes = None if languages is None else expand_languages(languages)
    found: dict[str, TaskSplit] = {}
    for split in task.splits(folder):
        if split.name == "test" or (split.name == "dev" and split.language not in found):
            found[split.language] = split
    if not found:
        raise CorpusError(
            f"{folder} has no files of {task.name}. Name their folder with --data; "
            "docs/tasks.md shows its layout."
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

    def examples(self) -> list[Any]:
        """At most `limit` examples of the split, evenly spaced."""
        return subsample(self.read(self.split), self.settings.limit)

    def read(self, split: TaskSplit) -> list[Any]:
        """The examples of a split, their texts pretokenized as the model's training text was."""
        examples = self.task.read(split)
        if not examples:
            names = ", ".join(map(str, split.files))
            raise CorpusError(
                f"There are no examples of {self.task.name} in {names}. Fetch it again, or leave "
                f"{split.language} out."
            )
        return pretokenize_examples(examples, split.language, self.pretokenization)

    def values(self, examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, float]:
        """Metric -> value of predictions."""
        return self.task.score(examples, predictions, self.split.language)

    def scores(
        self, values: Mapping[str, float], *, count: int, layer: int | None = None
    ) -> list[Score]:
        """The metrics of one layer as `Score`s; the task says of which ones lower is better."""
        task = self.task
        lower = {metric.name for metric in task.metrics if not metric.higher_is_better}
        return [
            Score(
                task=task.name,
                version=task.version,
                language=self.split.language,
                metric=name,
                value=value,
                count=count,
                higher_is_better=name not in lower,
                layer=layer,
                scenario=self.settings.scenario(task.kind),
            )
            for name, value in values.items()
        ]


def subsample(examples: list[X], limit: int | None) -> list[X]:
    """At most `limit` examples, evenly spaced: files are often sorted by section or relation."""
    if limit is None or limit >= len(examples):
        return examples
    return [examples[index * len(examples) // limit] for index in range(limit)]


def read_pairs(
    files: Sequence[Path], limit: int, note: Callable[[str], None] | None = None
) -> PairsByName:
    """The first `limit` translation pairs of TSV files that are named like `en-de.tsv`.

    `note` is called with a sentence about lines that could not be read.
    """
    pairs: PairsByName = {}
    for file in files:
        name = file.name.split(".")[0]
        if name.count("-") != 1:
            raise CorpusError(f"{file}: name the file after its two languages, like en-de.tsv.")
        if name in pairs:
            raise CorpusError(
                f"{file}: another file is of {name} too. Score one of them alone, with another "
                "file for --out."
            )
        first, second, skipped = _read_pairs(file, limit)
        if not first:
            raise CorpusError(f"{file} has no pair of sentences (two columns, a tab between).")
        if skipped and note is not None:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in skipped.most_common())
            total = f"{skipped.total():,} lines are left out"
            note(f"{file}: {total} ({reasons}), {len(first):,} read.")
        pairs[name] = first, second
    return pairs


def _read_pairs(file: Path, limit: int) -> tuple[list[str], list[str], Counter[str]]:
    from isoglot.corpus.reading.parallel import TsvReader
    from isoglot.corpus.reading.reader import Record

    first, second, skipped = [], [], Counter[str]()
    for found in TsvReader().read([file]):
        if not isinstance(found, Record):
            skipped[found.reason] += 1
            continue
        first.append(found.texts[0])
        second.append(found.texts[1])
        if len(first) == limit:
            break
    return first, second, skipped
