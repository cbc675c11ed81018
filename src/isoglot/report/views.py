"""The tables of a report: overview, transfer gaps, each task by language, its other metrics.

Models go down and languages across, as in papers (`Table.pieces` turns what is too wide).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isoglot.report.colours import HEAT
from isoglot.report.table import Heading, Number, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isoglot.report.board import Board, Cell, Column

_STAR = " * Over fewer languages than another model's, so not to be compared with it."


def overview(board: Board) -> Table:
    """Models down, tasks across: the average over languages."""
    columns = board.primary()
    averages = {column: _averages(board, column) for column in columns}
    starred = any(number.partial for found in averages.values() for number in found.values())
    return Table(
        title="Overview",
        caption="Averages over languages; ± is one standard deviation over repetitions."
        + (" The best of each column is bold." if len(board.models) > 1 else "")
        + (_STAR if starred else ""),
        corner="model",
        columns=tuple(heading(column, board) for column in columns),
        rows=tuple(
            (Heading(text=model), tuple(averages[c].get(model, Number()) for c in columns))
            for model in board.models
        ),
    )


def by_language(board: Board, column: Column) -> Table:
    """Models down, languages across, the average last."""
    entries = board.of(column)
    languages = board.languages(column)
    shade = Shades(board, column)
    averages = _averages(board, column)
    bests = {
        language: _best(
            (e.cells[language] for e in entries.values() if language in e.cells), column
        )
        for language in languages
    }
    rows = []
    for model, entry in entries.items():
        numbers = [
            number_of(entry.cells[language], column, board, bests[language], shade)
            if language in entry.cells
            else Number()
            for language in languages
        ]
        note = "" if entry.layer is None else f"layer {entry.layer}"
        rows.append((Heading(text=model, note=note), (*numbers, averages[model])))
    starred = any(number.partial for number in averages.values())
    return Table(
        title=title(column),
        caption=_caption(board, column) + (_STAR if starred else ""),
        corner="model",
        columns=(*(Heading(text=code) for code in languages), Heading(text="average")),
        rows=tuple(rows),
    )


def other_metrics(board: Board, shown: Column, others: Sequence[Column]) -> Table:
    """All other metrics of a task in one table: metrics and models down, languages across."""
    languages = sorted({code for column in others for code in board.languages(column)})
    rows = []
    for column in others:
        averages = _averages(board, column)
        for model, entry in board.of(column).items():
            cells = [entry.cells.get(language) for language in languages]
            numbers = [Number() if c is None else number_of(c, column, board, None) for c in cells]
            note = [model] if len(board.models) > 1 else []
            note += [] if entry.layer is None else [f"layer {entry.layer}"]
            head = Heading(text=_metric(column), note=", ".join(note))
            rows.append((head, (*numbers, averages[model])))
    return Table(
        title=f"{shown.label}: other metrics",
        caption="Shares in per cent. Each model at its best layer on average, where there are "
        "layers; metrics that end in table read the embedding table.",
        corner="metric",
        columns=(*(Heading(text=code) for code in languages), Heading(text="average")),
        rows=tuple(rows),
    )


def gaps(board: Board) -> Table | None:
    """Models down, tasks of zero-shot transfer across: what is lost on the way."""
    found = {}
    for column in board.primary():
        cells = {model: entry.gap(column) for model, entry in board.of(column).items()}
        known = {model: cell for model, cell in cells.items() if cell is not None}
        if known:
            found[column] = known
    if not found:
        return None
    return Table(
        title="Transfer gap",
        caption="The score of the language that was fine-tuned in, less the average of the other "
        "languages: what is lost on the way. Smaller is better, at the same score of the source.",
        corner="model",
        columns=tuple(heading(column, board) for column in found),
        rows=tuple(
            (
                Heading(text=model),
                tuple(_gap(known, model, column, board) for column, known in found.items()),
            )
            for model in board.models
            if any(model in known for known in found.values())
        ),
    )


def _gap(known: Mapping[str, Cell], model: str, column: Column, board: Board) -> Number:
    if model not in known:
        return Number()
    cell, scale = known[model], board.scales[column]
    return Number(
        value=scale * cell.mean,
        sd=None if cell.sd is None else scale * cell.sd,
        note=f"{column.source} less the mean of {cell.count} others{_repetitions(cell)}",
        best=len(known) > 1 and cell.mean == min(other.mean for other in known.values()),
    )


class Shades:
    """Shades of heat for one column: from its worst cell of all models to its best."""

    def __init__(self, board: Board, column: Column) -> None:
        means = [c.mean for e in board.of(column).values() for c in e.cells.values()]
        self._low, self._high = min(means), max(means)
        self._reverse = not column.higher_is_better

    def __call__(self, value: float) -> int:
        """The shade of a value of the column."""
        if self._high == self._low:
            return len(HEAT) // 2
        share = (value - self._low) / (self._high - self._low)
        return round((1 - share if self._reverse else share) * (len(HEAT) - 1))


def heading(column: Column, board: Board) -> Heading:
    """A task as the heading of a column."""
    versions = {c.version for c in board.columns if c.task == column.task}
    version = f" v{column.version}" if len(versions) > 1 else ""
    scenario = "" if column.scenario is None else f"{column.scenario}, "
    return Heading(text=f"{column.task}{version}", note=f"{scenario}{_metric(column)}")


def title(column: Column) -> str:
    """A column's title: task and metric."""
    return f"{column.label}: {column.metric}"


def _metric(column: Column) -> str:
    return column.metric + ("" if column.higher_is_better else " ↓")


def _caption(board: Board, column: Column) -> str:
    entries = board.of(column).values()
    counts = sorted({cell.count for entry in entries for cell in entry.cells.values()})
    size = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    caption = (
        f"{_metric(column)}{' × 100' if board.scales[column] == 100 else ''}, "
        f"{'higher' if column.higher_is_better else 'lower'} is better; "
        f"over {size} examples a language; version {column.version} of the task."
    )
    if any(entry.layer is not None for entry in entries):
        caption += " Each model at its best layer on average over these very languages."
    return caption


def _best(cells: Iterable[Cell], column: Column) -> float | None:
    """The best mean, where there is something to be better than."""
    means = [cell.mean for cell in cells]
    if len(means) < 2:
        return None
    return max(means) if column.higher_is_better else min(means)


def number_of(
    cell: Cell, column: Column, board: Board, best: float | None, shade: Shades | None = None
) -> Number:
    """A cell as a table shows it."""
    scale = board.scales[column]
    return Number(
        value=scale * cell.mean,
        sd=None if cell.sd is None else scale * cell.sd,
        note=f"{column.metric}, {cell.count:,} examples{_repetitions(cell)}",
        best=cell.mean == best,
        heat=None if shade is None else shade(cell.mean),
    )


def _averages(board: Board, column: Column) -> dict[str, Number]:
    """Model -> average; only averages over all languages of the column compete for the best."""
    entries = board.of(column)
    total = len(board.languages(column))
    whole = [e.average for e in entries.values() if e.average.count == total]
    best = _best(whole, column)
    numbers = {}
    for model, entry in entries.items():
        cell = entry.average
        layer = "" if entry.layer is None else f", layer {entry.layer}"
        numbers[model] = replace(
            number_of(cell, column, board, best if cell in whole else None),
            note=f"{column.metric}, {cell.count} languages{layer}{_repetitions(cell)}",
            partial=cell.count < total,
        )
    return numbers


def _repetitions(cell: Cell) -> str:
    return "" if cell.repetitions == 1 else f", {cell.repetitions} repetitions"
