"""A model's heat map: languages down, tasks across."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isoglot.report.table import Heading, Number, Table
from isoglot.report.views import Shades, heading, number_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.report.board import Board, Cell, Column, Entry


def heat_map(board: Board, model: str) -> Table:
    """Languages down, tasks across, of one model; shades are those of all models.

    Where all pairs of a task share a language (en-de, en-sw), the other one names the row.
    """
    columns = [column for column in board.primary() if (model, column) in board.entries]
    shades = {column: Shades(board, column) for column in columns}
    cells = {column: _rows_of(board.entries[model, column]) for column in columns}
    rows = []
    for language in sorted({row for of_column in cells.values() for row in of_column}):
        numbers = [
            _shaded(cells[column][language], column, board, shades[column])
            if language in cells[column]
            else Number()
            for column in columns
        ]
        rows.append((Heading(text=language), tuple(numbers)))
    return Table(
        title=model,
        caption="",
        corner="",
        columns=tuple(heading(column, board) for column in columns),
        rows=tuple(rows),
    )


def _rows_of(entry: Entry) -> Mapping[str, Cell]:
    """Row of a heat map -> cell."""
    sides = {pair: pair.split("-") for pair in entry.cells}
    shared = set.intersection(*(set(codes) for codes in sides.values()))
    if len(shared) != 1 or any(len(codes) != 2 for codes in sides.values()):
        return entry.cells
    (common,) = shared
    others = {pair: codes[codes[0] == common] for pair, codes in sides.items()}
    if len(set(others.values())) < len(others):  # both directions, each with its own score
        return entry.cells
    return {others[pair]: cell for pair, cell in entry.cells.items()}


def _shaded(cell: Cell, column: Column, board: Board, shade: Shades) -> Number:
    """A cell of a heat map: compact, its standard deviation told in the note."""
    number = number_of(cell, column, board, None, shade)
    sd = "" if number.sd is None else f", ± {number.sd:.1f}"
    return replace(number, sd=None, note=f"{number.note}{sd}")
