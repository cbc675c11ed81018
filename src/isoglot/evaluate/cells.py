"""Cells, one task in one language: which there are, which are done, their values as `Score`s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from isoglot.errors import CorpusError
from isoglot.results import Score
from isoglot.tasks.subsets import codes_of, is_wanted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from isoglot.evaluate.settings import FeatureSettings
    from isoglot.tasks import Part, Task

X = TypeVar("X")


def scores(
    task: Task[Any, Any],
    language: str,
    values: Mapping[str, float],
    *,
    count: int,
    settings: FeatureSettings,
    layer: int | None = None,
) -> list[Score]:
    """The values of one layer as scores. Lower is better where the task says so of the metric."""
    lower = {metric.name for metric in task.metrics if not metric.higher_is_better}
    return [
        Score(
            task=task.name,
            version=task.version,
            language=language,
            metric=name,
            value=value,
            count=count,
            higher_is_better=name not in lower,
            layer=layer,
            scenario=settings.scenario(task.kind),
        )
        for name, value in values.items()
    ]


def taken(examples: list[X], most: int | None) -> list[X]:
    """At most so many examples, evenly spaced: files are often sorted by section or relation."""
    if most is None or most >= len(examples):
        return examples
    return [examples[index * len(examples) // most] for index in range(most)]


def parts_to_score(
    task: Task[Any, Any], folder: Path, languages: Collection[str] | None
) -> list[Part]:
    """The test part of each language, or its dev part where there is no test.

    `languages` are codes, or names of sets (`isoglot.tasks.subsets`); none: all there are.

    Raises:
        IsoglotError: nothing of the task lies under the folder, or a set of languages is unknown.
    """
    codes = None if languages is None else codes_of(languages)
    found: dict[str, Part] = {}
    for part in task.parts(folder):
        if part.split == "test" or (part.split == "dev" and part.language not in found):
            found[part.language] = part
    if not found:
        raise CorpusError(
            f"{folder} has no files of {task.name}. Name their folder with --data; "
            "docs/evaluate.md shows how they must lie in it."
        )
    return [part for language, part in found.items() if is_wanted(language, codes)]


def is_done(
    scores: Iterable[Score], task: Task[Any, Any], language: str, scenario: str | None
) -> bool:
    """Has this cell been scored, by this version of its task and in this way?"""
    cell = task.name, task.version, language, scenario
    return any((s.task, s.version, s.language, s.scenario) == cell for s in scores)
