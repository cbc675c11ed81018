"""Links from a report to the explorer, which shows what a model got wrong.

Results files keep for most tasks which examples are right (`Score.outcomes`). The examples that
most models get wrong are linked by their number; without outcomes, task and language are linked.
The page fetches nothing: the explorer is a program on the reader's own machine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.report.leaderboard import Column, Leaderboard, ModelScores
    from isoglot.types import FloatArray

EXPLORER = "http://127.0.0.1:7860/"
"""Where `isoglot explore` listens unless it is given another port."""
_MAX_ITEMS, _MAX_LINKS = 5, 1000
"""Examples that are linked for each task and language, and in all, one at least for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLink:
    """One example that models get wrong."""

    item: int
    """Its index in the test data, from 0."""
    models: int
    """Models that get it wrong."""
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageErrors:
    """The errors of all models in one language of a task."""

    language: str
    address: str
    wrong: tuple[int | None, ...]
    """Wrong examples of each model; None where its results do not say which are wrong."""
    examples: int
    links: tuple[ErrorLink, ...]


def explorer_address(task: str, language: str, item: int | None = None) -> str:
    """The address at which the explorer shows a task, a language and an example of it."""
    query: dict[str, str | int] = {"tab": "errors", "task": task, "language": language}
    if item is not None:
        query["item"] = item
    return f"{EXPLORER}?{urlencode(query)}"


def task_errors(board: Leaderboard, column: Column) -> list[LanguageErrors]:
    """The errors of a task by language, those of all models side by side."""
    models = board.scores_of(column)
    languages = sum(len(board.languages(one)) for one in board.primary_columns())
    limit = max(1, min(_MAX_ITEMS, _MAX_LINKS // max(1, languages)))
    return [_language_errors(models, column, code, limit) for code in board.languages(column)]


def _language_errors(
    models: Mapping[str, ModelScores], column: Column, language: str, limit: int
) -> LanguageErrors:
    known = {m: s.outcomes[language] for m, s in models.items() if language in s.outcomes}
    # the data of most models: numbers of examples of other data mean other examples
    data = Counter(found for found, _ in known.values()).most_common(1)
    same = {m: values for m, (found, values) in known.items() if data and found == data[0][0]}
    links = _links(same, column.task, language, limit)
    return LanguageErrors(
        language=language,
        address=explorer_address(column.task, language),
        wrong=tuple(int((same[m] < 1).sum()) if m in same else None for m in models),
        examples=next((len(values) for values in same.values()), 0),
        links=links,
    )


def _links(
    outcomes: Mapping[str, FloatArray], task: str, language: str, limit: int
) -> tuple[ErrorLink, ...]:
    """Links to the examples that most models get wrong, in the order of the test data."""
    if not outcomes:
        return ()
    wrong = np.sum([values < 1 for values in outcomes.values()], axis=0)
    chosen = np.argsort(-wrong, kind="stable")[:limit]
    return tuple(
        ErrorLink(
            item=item,
            models=int(wrong[item]),
            address=explorer_address(task, language, item),
        )
        for item in sorted(map(int, chosen))
        if wrong[item]
    )
