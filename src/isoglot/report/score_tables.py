"""The score tables of a report: transfer gap, each task by language, heat maps.

Models are rows and languages columns, as in papers; `Table.split` transposes wide tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isoglot.report.colors import HEAT
from isoglot.report.noise import compare_models
from isoglot.report.tables import Heading, Number, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.report.leaderboard import Column, Leaderboard, MeanScore, ModelScores
    from isoglot.report.noise import Comparisons

_BOLD = (
    " Bold: better than every other model beyond noise (paired bootstrap over examples, 97.5 %)."
)
PARTIAL = " * An average over fewer languages than another model's, so not comparable with it."


def language_table(board: Leaderboard, column: Column) -> Table:
    """Models by languages, with the average in the last column."""
    models = board.scores_of(column)
    languages = board.languages(column)
    heat = HeatScale(board, column)
    averages = average_numbers(board, column)
    higher = column.higher_is_better
    best = {code: compare_models(models, [code], higher=higher).best() for code in languages}
    rows = []
    for model, scores in models.items():
        numbers = [
            to_number(
                scores.by_language.get(code), column, board, is_best=best[code] == model, heat=heat
            )
            for code in languages
        ]
        note = _layer_note(scores, board.scales[column])
        rows.append((Heading(text=model, note=note), (*numbers, averages[model])))
    has_partial = any(number.partial for number in averages.values())
    return Table(
        title=task_title(column),
        caption=_caption(board, column)
        + (_BOLD if len(models) > 1 else "")
        + (PARTIAL if has_partial else ""),
        corner="model",
        columns=(*(Heading(text=code) for code in languages), Heading(text="average")),
        rows=tuple(rows),
    )


def other_metrics_table(board: Leaderboard, primary: Column, others: Sequence[Column]) -> Table:
    """The other metrics of a task in one table: metrics and models by languages."""
    languages = sorted({code for column in others for code in board.languages(column)})
    rows = []
    for column in others:
        averages = average_numbers(board, column)
        for model, scores in board.scores_of(column).items():
            found = [scores.by_language.get(language) for language in languages]
            numbers = [to_number(score, column, board) for score in found]
            note = [model] if len(board.models) > 1 else []
            note += [] if scores.layer is None else [f"layer {scores.layer}"]
            heading = Heading(text=_metric(column), note=", ".join(note))
            rows.append((heading, (*numbers, averages[model])))
    return Table(
        title=f"{primary.label}: other metrics",
        caption="Shares in per cent. Each model as its folder delivers it, where a task has "
        'layers; metrics whose name ends in "table" use the embedding table.',
        corner="metric",
        columns=(*(Heading(text=code) for code in languages), Heading(text="average")),
        rows=tuple(rows),
    )


def gap_table(board: Leaderboard) -> Table | None:
    """Models by zero-shot tasks: the transfer gap."""
    gaps = {column: _gaps(board, column) for column in board.primary_columns()}
    gaps = {column: of_column for column, of_column in gaps.items() if of_column}
    if not gaps:
        return None
    return Table(
        title="Transfer gap",
        caption="The score in the source language minus the average over the other languages. "
        "At the same source score, a smaller gap is better. A model whose source score is near "
        "chance has none.",
        corner="model",
        columns=tuple(task_heading(column, board) for column in gaps),
        rows=tuple(
            (Heading(text=model), tuple(numbers.get(model, Number()) for numbers in gaps.values()))
            for model in board.models
            if any(model in numbers for numbers in gaps.values())
        ),
    )


def _gaps(board: Leaderboard, column: Column) -> dict[str, Number]:
    """Model -> transfer gap, for the models that have one."""
    found = {model: scores.gap(column) for model, scores in board.scores_of(column).items()}
    known = {model: gap for model, gap in found.items() if gap is not None}
    return {
        model: replace(
            to_number(gap, column, board),
            note=f"{column.source} minus the mean of {gap.count} others{_repetitions(gap)}",
        )
        for model, gap in known.items()
    }


def heat_map(board: Leaderboard, model: str) -> Table:
    """Languages by tasks for one model; the scale of each task is that of all models.

    Where all pairs of a task share a language (en-de, en-sw), the other language names the row.
    """
    columns = [column for column in board.primary_columns() if (model, column) in board.scores]
    heat = {column: HeatScale(board, column) for column in columns}
    scores = {column: _by_row(board.scores[model, column]) for column in columns}
    rows = []
    for row in sorted({row for of_column in scores.values() for row in of_column}):
        numbers = [
            _without_sd(to_number(scores[column].get(row), column, board, heat=heat[column]))
            for column in columns
        ]
        rows.append((Heading(text=row), tuple(numbers)))
    return Table(
        title=model,
        caption="",
        corner="",
        columns=tuple(task_heading(column, board) for column in columns),
        rows=tuple(rows),
    )


def _by_row(scores: ModelScores) -> Mapping[str, MeanScore]:
    """Row of a heat map -> score."""
    sides = {pair: pair.split("-") for pair in scores.by_language}
    shared = set.intersection(*(set(codes) for codes in sides.values()))
    if len(shared) != 1 or any(len(codes) != 2 for codes in sides.values()):
        return scores.by_language
    (common,) = shared
    others = {pair: codes[codes[0] == common] for pair, codes in sides.items()}
    if len(set(others.values())) < len(others):  # both directions, each with its own score
        return scores.by_language
    return {others[pair]: score for pair, score in scores.by_language.items()}


def _without_sd(number: Number) -> Number:
    """A compact number: its standard deviation is only in the note."""
    sd = "" if number.sd is None else f", ± {number.sd:.1f}"
    return replace(number, sd=None, note=f"{number.note}{sd}")


_MIN_SPAN = 0.2
"""Shares that the shades span at least: differences of a point or two look alike."""


class HeatScale:
    """Shades of one column: from the worst score of all models to the best."""

    def __init__(self, board: Leaderboard, column: Column) -> None:
        models = board.scores_of(column).values()
        means = [score.mean for scores in models for score in scores.by_language.values()]
        self._low, self._high = min(means), max(means)
        self._reverse = not column.higher_is_better
        if board.scales[column] != 1:  # shares
            least = _MIN_SPAN if self._high > self._low else 0.0
            self._high = max(self._high, min(self._low + least, 1.0))
            self._low = min(self._low, max(self._high - least, 0.0))

    def __call__(self, value: float) -> int:
        """Index of the shade of a value."""
        if self._high == self._low:
            return len(HEAT) // 2
        share = (value - self._low) / (self._high - self._low)
        return round((1 - share if self._reverse else share) * (len(HEAT) - 1))


def to_number(
    score: MeanScore | None,
    column: Column,
    board: Leaderboard,
    *,
    is_best: bool = False,
    heat: HeatScale | None = None,
) -> Number:
    """A score, or a missing one, as a number of a table."""
    if score is None:
        return Number()
    scale = board.scales[column]
    return Number(
        value=scale * score.mean,
        sd=None if score.sd is None else scale * score.sd,
        note=f"{column.metric}, {score.count:,} examples{_interval(score, scale)}"
        f"{_repetitions(score)}",
        best=is_best,
        heat=None if heat is None else heat(score.mean),
    )


def task_heading(column: Column, board: Leaderboard) -> Heading:
    """The heading of a task's column."""
    versions = {c.version for c in board.columns if c.task == column.task}
    version = f" v{column.version}" if len(versions) > 1 else ""
    scenario = "" if column.scenario is None else f"{column.scenario}, "
    return Heading(text=f"{column.task}{version}", note=f"{scenario}{_metric(column)}")


def task_title(column: Column) -> str:
    """The title of a task's table: task, scenario and metric."""
    return f"{column.label}: {column.metric}"


def _metric(column: Column) -> str:
    return column.metric + ("" if column.higher_is_better else " ↓")


def _caption(board: Leaderboard, column: Column) -> str:
    models = board.scores_of(column).values()
    counts = sorted({score.count for m in models for score in m.by_language.values()})
    size = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    caption = (
        f"{_metric(column)}{' × 100' if board.scales[column] == 100 else ''}, "
        f"{'higher' if column.higher_is_better else 'lower'} is better; {size} examples per "
        f"language; task version {column.version}."
    )
    if any(scores.by_layer for scores in models):
        caption += (
            " Each model is shown as its folder delivers it: its exported sentence vectors, or its "
            "last layer. The best layer beside its name was chosen on one half of the examples and "
            "scored on the other."
        )
    return caption


def _layer_note(scores: ModelScores, scale: float) -> str:
    """The delivered layer, and the best one with its average."""
    if not scores.by_layer:
        return ""
    shown = "exported" if scores.layer is None else f"layer {scores.layer}"
    if scores.best is None:
        return shown
    return f"{shown}; best {scores.best.name}: {scale * scores.best.average:.1f}"


def _interval(score: MeanScore, scale: float) -> str:
    if score.low is None or score.high is None:
        return ""
    return f", 95 %: {scale * score.low:.1f} to {scale * score.high:.1f}"


def comparisons_of(board: Leaderboard, column: Column) -> Comparisons:
    """The comparisons of the models whose average is over all languages of a column."""
    languages = board.languages(column)
    models = board.scores_of(column)
    complete = {name: m for name, m in models.items() if m.average.count == len(languages)}
    return compare_models(complete, languages, higher=column.higher_is_better)


def average_numbers(
    board: Leaderboard, column: Column, comparisons: Comparisons | None = None
) -> dict[str, Number]:
    """Model -> average; only averages over all languages of the column can be the best."""
    models = board.scores_of(column)
    total = len(board.languages(column))
    best = (comparisons or comparisons_of(board, column)).best()
    numbers = {}
    for model, scores in models.items():
        average, scale, ends = scores.average, board.scales[column], scores.interval
        layer = "" if scores.layer is None else f", layer {scores.layer}"
        numbers[model] = replace(
            to_number(average, column, board, is_best=model == best),
            note=f"{column.metric}, {average.count} languages{layer}{_repetitions(average)}",
            partial=average.count < total,
            interval=None if ends is None else (scale * ends[0], scale * ends[1]),
        )
    return numbers


def _repetitions(score: MeanScore) -> str:
    return "" if score.repetitions == 1 else f", {score.repetitions} repetitions"
