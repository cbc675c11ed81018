"""The leaderboard: models by tasks, with mean, rank and marks of what is beyond noise.

    Comparisons of each task --> marks (bold, ≈, ▲, ▼), ranks
    differences over all tasks --> marks of the mean

Every rule that decides a mark is in the caption, which stands under the table.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from isoglot.errors import nearest
from isoglot.report.inputs import ReportError
from isoglot.report.noise import Comparisons, is_better_over_tasks
from isoglot.report.score_tables import (
    PARTIAL,
    average_numbers,
    comparisons_of,
    task_heading,
)
from isoglot.report.tables import Heading, Number, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isoglot.report.leaderboard import Column, Leaderboard

WITHIN, ABOVE, BELOW = "≈", "▲", "▼"
"""Marks: within noise of the best; better, worse than the baseline beyond noise."""


def overview_table(board: Leaderboard, *, baseline: str | None = None) -> Table:
    """Models by tasks: averages over languages.

    Several models are ranked: their table has marks, and columns for mean and rank where some
    model has them, and its rows are sorted by rank. The marks of `baseline` compare with it.
    """
    if baseline is not None and baseline not in board.models:
        raise ReportError(
            f"--baseline {baseline} is not one of the models: {nearest(baseline, board.models)}"
        )
    columns = board.primary_columns()
    compared = {column: comparisons_of(board, column) for column in columns}
    numbers = {
        column: _marked(average_numbers(board, column, own), own, baseline)
        for column, own in compared.items()
    }
    means = _mean_numbers(board, compared, baseline)
    ranks = _rank_numbers(board, compared)
    headings = [task_heading(column, board) for column in columns]
    cells = {m: [numbers[c].get(m, Number()) for c in columns] for m in board.models}
    order = list(board.models)
    if means:
        headings.append(Heading(text="mean", note=f"of {len(_averaged(columns, board))} tasks"))
        cells = {m: [*own, means.get(m, Number())] for m, own in cells.items()}
    if ranks:
        headings.append(Heading(text="rank", note="mean over tasks ↓"))
        cells = {m: [*own, ranks.get(m, Number())] for m, own in cells.items()}
        order.sort(key=lambda m: _sort_key(ranks.get(m), means.get(m)))
    is_partial = any(number.partial for found in numbers.values() for number in found.values())
    return Table(
        title="Leaderboard" if len(board.models) > 1 else "Overview",
        caption=_caption(board, columns, has_mean=bool(means), has_rank=bool(ranks))
        + (_baseline_rule(baseline) if baseline is not None else "")
        + (PARTIAL if is_partial else ""),
        corner="model",
        columns=tuple(headings),
        rows=tuple((Heading(text=model), tuple(cells[model])) for model in order),
    )


def _marked(
    numbers: Mapping[str, Number], compared: Comparisons, baseline: str | None
) -> dict[str, Number]:
    """The numbers with their marks; averages over fewer languages than another's have none."""
    found, top = dict(numbers), compared.top()
    for model in compared.means if len(compared.means) > 1 else ():
        marks = WITHIN if len(top) > 1 and model in top else ""
        notes = [found[model].note] + (["within noise of the best"] if marks else [])
        if baseline is not None and baseline in compared.means and model != baseline:
            mark, note = _against(compared, model, baseline)
            marks += mark
            notes.append(note)
        found[model] = replace(found[model], mark=marks, note="; ".join(notes))
    return found


def _against(compared: Comparisons, model: str, baseline: str) -> tuple[str, str]:
    """The mark and the note of a model beside the baseline."""
    if compared.is_better(model, baseline):
        return ABOVE, f"better than {baseline} beyond noise"
    if compared.is_better(baseline, model):
        return BELOW, f"worse than {baseline} beyond noise"
    return "", f"within noise of {baseline}"


def _averaged(columns: Iterable[Column], board: Leaderboard) -> list[Column]:
    """The tasks that can be averaged: their metric is a share, and higher is better."""
    return [c for c in columns if c.higher_is_better and board.scales[c] == 100]


def _mean_numbers(
    board: Leaderboard, compared: Mapping[Column, Comparisons], baseline: str | None
) -> dict[str, Number]:
    """Model -> mean over tasks, for models that have all tasks; none for a single task or model."""
    columns = _averaged(compared, board)
    having = [m for m in board.models if all(m in compared[c].means for c in columns)]
    if len(columns) < 2 or len(having) < 2:
        return {}

    def test(first: str, second: str) -> bool:
        scores = board.scores
        return is_better_over_tasks(
            [(scores[first, c], scores[second, c], board.languages(c)) for c in columns]
        )

    means = {model: fmean(compared[c].means[model] for c in columns) for model in having}
    over_tasks = Comparisons(means, test, higher=True)
    note = f"mean of {', '.join(column.label for column in columns)}"
    best = over_tasks.best()
    numbers = {m: Number(value=100 * mean, note=note, best=m == best) for m, mean in means.items()}
    return _marked(numbers, over_tasks, baseline)


def _rank_numbers(board: Leaderboard, compared: Mapping[Column, Comparisons]) -> dict[str, Number]:
    """Model -> its mean rank over tasks, for models that have all tasks; none for one model."""
    having = [m for m in board.models if all(m in own.means for own in compared.values())]
    if len(having) < 2:
        return {}
    ranks = {m: [own.rank(m) for own in compared.values()] for m in having}
    return {
        model: Number(value=fmean(own), note=f"ranks {', '.join(map(str, own))}")
        for model, own in ranks.items()
    }


def _sort_key(rank: Number | None, mean: Number | None) -> tuple[float, float]:
    """Best rank first, then best mean; models without a rank last, in the order given."""
    if rank is None or rank.value is None:
        return float("inf"), 0.0
    return rank.value, -(mean.value if mean is not None and mean.value is not None else 0.0)


def _caption(
    board: Leaderboard, columns: Sequence[Column], *, has_mean: bool, has_rank: bool
) -> str:
    caption = (
        "Averages over languages; ± is one standard deviation over repetitions, a range the 95 % "
        "interval over examples of a single one."
    )
    if len(board.models) == 1:
        return caption
    caption += (
        " A model is better than another beyond noise if it is better in 97.5 % of 1,000 samples "
        "of a paired bootstrap over examples; each pair of models is tested by itself. Bold: "
        f"better than every other model beyond noise. {WITHIN}: the best, and models within noise "
        "of it; nothing is bold then."
    )
    if has_mean:
        caption += (
            f" Mean: over the {len(_averaged(columns, board))} of {len(columns)} tasks whose "
            "metric is a share and better where it is higher, for models that have all of them."
        )
    if has_rank:
        caption += (
            " Rank: one more than the number of models that are better beyond noise, averaged over "
            "all tasks."
        )
    return caption


def _baseline_rule(baseline: str) -> str:
    return (
        f" {ABOVE}, {BELOW}: better, worse than {baseline} beyond noise; neither mark: within "
        "noise of it."
    )
