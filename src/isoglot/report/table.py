"""What a table is: numbers with headings on two sides, written by the page, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDE = 20
"""Columns of numbers that fit on a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number of a table; a missing one has no value."""

    value: float | None = None
    sd: float | None = None
    note: str = ""
    """What it is: metric, repetitions, count."""
    partial: bool = False
    """An average over fewer languages than another model's: not to be compared with it."""
    best: bool = False
    """The best of its column (or of its row, where the table is turned)."""
    heat: int | None = None
    """Shade, from 0 for the lowest of the table to the last of `colours.HEAT` for the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The name of a column or a row."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Numbers with headings on two sides."""

    title: str
    caption: str
    corner: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[Heading, tuple[Number, ...]], ...]

    def turned(self) -> Table:
        """Rows and columns exchanged."""
        heads = tuple(head for head, _ in self.rows)
        bodies = zip(*(numbers for _, numbers in self.rows), strict=True)
        rows = tuple(zip(self.columns, bodies, strict=True))
        return replace(self, corner="", columns=heads, rows=rows)

    def pieces(self) -> list[Table]:
        """Tables that fit a page: cut where too wide, and turned where that makes no more lines."""
        across, down = len(self.columns), len(self.rows)
        turn = across > WIDE and across * _cuts(down) <= down * _cuts(across)
        table = self.turned() if turn else self
        width = len(table.columns)
        number = _cuts(width)
        edges = [width * piece // number for piece in range(number + 1)]
        return [
            replace(
                table,
                title=table.title if number == 1 else f"{table.title} ({piece} of {number})",
                columns=table.columns[start:end],
                rows=tuple((head, numbers[start:end]) for head, numbers in table.rows),
            )
            for piece, (start, end) in enumerate(pairwise(edges), start=1)
        ]


def shared_note(numbers: Iterable[Number]) -> str:
    """The note that most of a row's numbers have; empty where no two share one.

    The page writes it once, at the row: browsers show it over every cell without its own. Repeated
    in each cell, notes would be half of a large page.
    """
    counts = Counter(number.note for number in numbers if number.value is not None)
    note, times = counts.most_common(1)[0] if counts else ("", 0)
    return note if times > 1 else ""


def _cuts(columns: int) -> int:
    """How many tables so many columns need."""
    return max(1, math.ceil(columns / WIDE))
