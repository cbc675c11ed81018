"""The table that `isoglot evaluate` prints: what the model folder delivers, and beside it layers.

A row is a task in a language. `percent` is the score of the vectors that users of the folder get,
with a 95 % interval over examples; a paper's layer and direction, and the best layer, stand beside.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from isoglot.averaging import best_layer, delivered_layer
from isoglot.cli.console import print_table
from isoglot.evaluation.views import retrieval_view
from isoglot.intervals import mean_interval
from isoglot.tasks import find_task
from isoglot.tasks.language_sets import is_selected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.averaging import BestLayer
    from isoglot.evaluation.settings import FeatureConfig
    from isoglot.evaluation.views import RetrievalView
    from isoglot.results import Score
    from isoglot.tasks.base import Task

_ROYAL = "analogy-royal"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """What the table shows beside the delivered scores."""

    settings: FeatureConfig
    languages: tuple[str, ...] | None = None
    """Only these count: the results file may have more."""
    protocol: str = "xtreme"
    layer: int | None = None
    direction: str | None = None
    vectors: str = ""
    """The exported sentence vectors in words."""


def print_scores(scores: Sequence[Score], names: Sequence[str], options: TableOptions) -> None:
    """Print the first metric of each task, and what the columns mean."""
    rows: list[list[str]] = []
    heading = ""
    notes: dict[str, None] = {}
    for name in names:
        task = find_task(name)
        shown = task.name, task.version, options.settings.scenario(task.kind)
        own = [
            score
            for score in scores
            if (score.task, score.version, score.scenario) == shown
            and is_selected(score.language, options.languages)
        ]
        if not own:
            rows.append([task.name, "–", "not in the languages asked for", "", "", "", ""])
            continue
        table = _TaskTable(task, own, options)
        heading = heading or (table.view.name if table.view else "")
        rows += table.rows()
        notes |= dict.fromkeys(table.notes())
    headings = ["task", "language", "metric", "percent", "95 %", heading, "best layer"]
    used = [n for n, title in enumerate(headings) if n < 4 or any(row[n] for row in rows)]
    print_table([headings[n] for n in used], [[row[n] for n in used] for row in rows])
    for note in notes:
        print(note)
    if _ROYAL in names:
        _print_royal([score for score in scores if score.task == _ROYAL])


class _TaskTable:
    """The rows of one task."""

    def __init__(self, task: Task[Any, Any], own: Sequence[Score], options: TableOptions) -> None:
        self._task, self._own, self._options = task, own, options
        self._metric = task.metrics[0].name
        found = [score for score in own if score.metric == self._metric]
        self._layer = delivered_layer(score.layer for score in found)
        self._delivered = {s.language: s for s in found if s.layer == self._layer}
        self._best: BestLayer | None = best_layer(found)
        self.view: RetrievalView | None = None
        layers = [score.layer for score in found if score.layer is not None]
        if task.kind == "retrieval" and layers:
            self.view = retrieval_view(
                options.protocol, max(layers), layer=options.layer, direction=options.direction
            )

    def rows(self) -> list[list[str]]:
        """A row for each language, and one for their average."""
        viewed = {} if self.view is None else self.view.values(self._own, self._metric)
        best = {} if self._best is None else self._best.by_language
        rows = []
        for language, score in self._delivered.items():
            rows.append(
                [
                    *(self._task.name, language, self._metric),
                    f"{100 * score.value:.1f}",
                    _interval(score.low, score.high),
                    f"{100 * viewed[language].value:.1f}" if language in viewed else "",
                    f"{100 * best[language]:.1f}" if language in best else "",
                ]
            )
        rows.append(
            [
                *(self._task.name, "average" + self._coverage(), self._metric),
                f"{100 * fmean(s.value for s in self._delivered.values()):.1f}",
                _interval(
                    *mean_interval((s.value, s.low, s.high) for s in self._delivered.values())
                    or (None, None)
                ),
                f"{100 * fmean(s.value for s in viewed.values()):.1f}" if viewed else "",
                "" if self._best is None else f"{100 * self._best.average:.1f}, {self._best.name}",
            ]
        )
        return rows

    def notes(self) -> list[str]:
        """Sentences about the columns."""
        notes = []
        if self._task.kind == "retrieval":
            notes.append(f"percent: the vectors that the folder gives ({self._options.vectors}).")
        elif self._layer is not None:
            notes.append("percent: of the last layer, where a task has layers.")
        if self.view is not None and not self.view.values(self._own, self._metric):
            notes.append(f"no column for {self.view.name}: no pair is scored in that direction.")
        if any(score.low is not None for score in self._delivered.values()):
            notes.append("95 %: bootstrap over examples.")
        if self._best is not None:
            notes.append(
                "best layer: on average over the languages, chosen on the even examples and scored "
                "on the odd ones, and the other way round."
            )
        return notes

    def _coverage(self) -> str:
        """How many of the given languages the average covers (` (18 of 36)`), if not all."""
        languages = self._options.languages
        missing = set(languages or ()) - _covered(self._delivered)
        if languages is None or not missing:
            return ""
        return f" ({len(languages) - len(missing)} of {len(languages)})"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"


def _covered(scored: Iterable[str]) -> set[str]:
    return {
        code
        for language in scored
        for code in (language, *language.split("-"))
        if code != "en" or language == "en"  # a pair with English does not cover English
    }


def _print_royal(scores: Sequence[Score]) -> None:
    """MLM-GC's Table 3: the cosine of each sum with Queen and with Königin, from the table."""
    cosines: dict[str, dict[str, float]] = defaultdict(dict)
    for score in scores:
        words = score.metric.split()
        if len(words) == 4 and words[0] == "cosine" and words[-1] == "table":
            cosines[words[1]][words[2]] = score.value
    queens = list(dict.fromkeys(queen for own in cosines.values() for queen in own))
    print_table(
        ["X", *(f"cos(X, {queen})" for queen in queens)],
        [[name, *(f"{own[queen]:.2f}" for queen in queens)] for name, own in cosines.items()],
    )
    print("cosines: of the embedding table, as in Table 3 of MLM-GC.")
