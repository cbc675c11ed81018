r"""Tables of numbers: the data class, and its Markdown and LaTeX.

The HTML page has a template for the same class. LaTeX tables are for `\input`; the preamble needs
`\usepackage{booktabs, graphicx}`, and a table wider than the line is scaled down.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_COLUMNS = 20
"""Columns of numbers that fit on a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number of a table; a missing one has no value."""

    value: float | None = None
    sd: float | None = None
    interval: tuple[float, float] | None = None
    """The 95 % interval, shown where there is no standard deviation over repetitions."""
    note: str = ""
    """Metric, number of examples or languages, repetitions: shown by the page as a tooltip."""
    partial: bool = False
    """An average over fewer languages than another model's, so not comparable with it."""
    best: bool = False
    """The best of its column (or of its row, where the table is transposed)."""
    mark: str = ""
    """Marks of significance behind the number, which the table's caption explains."""
    heat: int | None = None
    """Index of its shade in `colors.HEAT`, from 0 for the worst."""


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

    def transposed(self) -> Table:
        """Rows and columns exchanged."""
        headings = tuple(heading for heading, _ in self.rows)
        bodies = zip(*(numbers for _, numbers in self.rows), strict=True)
        rows = tuple(zip(self.columns, bodies, strict=True))
        return replace(self, corner="", columns=headings, rows=rows)

    def split(self) -> list[Table]:
        """Tables that fit on a page: transposed if that needs no more lines, then split."""
        across, down = len(self.columns), len(self.rows)
        is_longer = across * _num_tables(down) > down * _num_tables(across)
        table = self.transposed() if across > MAX_COLUMNS and not is_longer else self
        width = len(table.columns)
        number = _num_tables(width)
        edges = [width * part // number for part in range(number + 1)]
        return [
            replace(
                table,
                title=table.title if number == 1 else f"{table.title} ({part} of {number})",
                columns=table.columns[start:end],
                rows=tuple((heading, numbers[start:end]) for heading, numbers in table.rows),
            )
            for part, (start, end) in enumerate(pairwise(edges), start=1)
        ]


def _num_tables(columns: int) -> int:
    return max(1, math.ceil(columns / MAX_COLUMNS))


def split_all(tables: Iterable[Table]) -> list[Table]:
    """The tables, each split so that it fits on a page."""
    return [part for table in tables for part in table.split()]


def shared_note(numbers: Iterable[Number]) -> str:
    """The note that most numbers of a row have; empty where no two share one.

    The page writes it once, as the tooltip of the row. Repeated in each cell, notes would be half
    of a large page.
    """
    counts = Counter(number.note for number in numbers if number.value is not None)
    note, times = counts.most_common(1)[0] if counts else ("", 0)
    return note if times > 1 else ""


def to_markdown(tables: Iterable[Table]) -> str:
    """All tables as Markdown, each with its title as a heading and its caption below."""
    return "\n".join(_markdown_table(table) for table in tables)


def to_latex(tables: Iterable[Table]) -> str:
    """All tables as LaTeX, each a float with its caption."""
    return "\n".join(_latex_table(table) for table in tables)


def _markdown_table(table: Table) -> str:
    def number_text(number: Number) -> str:
        text = _number_text(number, missing="", bold="**{}**", partial="\\*", plus_minus="±")
        return f"{text} {number.mark}".rstrip()

    escaped = _markdown_escaped
    headings = [escaped(table.corner), *(_heading_text(h, escaped) for h in table.columns)]
    lines = [
        f"## {escaped(table.title)}",
        "",
        f"| {' | '.join(headings)} |",
        f"| --- |{' ---: |' * len(table.columns)}",
    ]
    lines += [
        f"| {' | '.join([_heading_text(heading, escaped), *map(number_text, numbers)])} |"
        for heading, numbers in table.rows
    ]
    return "\n".join([*lines, "", table.caption, ""])


def _latex_table(table: Table) -> str:
    def number_text(number: Number) -> str:
        text = _number_text(
            number, missing="--", bold=r"\textbf{{{}}}", partial="*", plus_minus=r"$\pm$"
        )
        return text + _latex_escaped(number.mark)

    escaped = _latex_escaped
    columns = (Heading(text=table.corner), *table.columns)
    headings = [rf"    {' & '.join(escaped(column.text) for column in columns)} \\"]
    if any(column.note for column in columns):
        notes = (rf"\scriptsize {escaped(column.note)}" for column in columns)
        headings.append(rf"    {' & '.join(notes)} \\")
    body = [
        rf"    {' & '.join([_heading_text(heading, escaped), *map(number_text, numbers)])} \\"
        for heading, numbers in table.rows
    ]
    caption = f"{table.title}. {table.caption}".rstrip()
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering\small",
            rf"  \resizebox{{{_LATEX_MAX_WIDTH}}}{{!}}{{%",
            rf"  \begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"    \toprule",
            *headings,
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}}",
            rf"  \caption{{{escaped(caption)}}}",
            r"\end{table}",
            "",
        ]
    )


def _heading_text(heading: Heading, escaped: Callable[[str], str]) -> str:
    text = escaped(heading.text)
    return f"{text} ({escaped(heading.note)})" if heading.note else text


def _number_text(number: Number, *, missing: str, bold: str, partial: str, plus_minus: str) -> str:
    if number.value is None:
        return missing
    text = f"{number.value:.1f}{partial if number.partial else ''}"
    text = bold.format(text) if number.best else text
    if number.sd is not None:
        return f"{text} {plus_minus} {number.sd:.1f}"
    if number.interval is not None:
        return f"{text} ({number.interval[0]:.1f} to {number.interval[1]:.1f})"
    return text


def _markdown_escaped(text: str) -> str:
    for mark in "\\|*_<":
        text = text.replace(mark, f"\\{mark}")
    return text


_LATEX_MAX_WIDTH = r"\ifdim\width>\linewidth\linewidth\else\width\fi"
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "↓": r"$\downarrow$",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "≈": r"$^\approx$",
    "▲": r"$^\bigtriangleup$",
    "▼": r"$^\bigtriangledown$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}


def _latex_escaped(text: str) -> str:
    return "".join(_LATEX_SPECIAL.get(character, character) for character in text)
