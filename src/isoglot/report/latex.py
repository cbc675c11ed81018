r"""Tables as LaTeX, for a paper: `\input` the file.

The preamble needs `\usepackage{booktabs, graphicx}`; a table wider than a line is made smaller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.report.table import Heading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.report.table import Number, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "↓": r"$\downarrow$",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}

_AT_MOST_A_LINE = r"\ifdim\width>\linewidth\linewidth\else\width\fi"


def latex(tables: Iterable[Table]) -> str:
    """All tables, each a float with its caption."""
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    columns = (Heading(text=table.corner), *table.columns)
    heads = [rf"    {' & '.join(_escaped(column.text) for column in columns)} \\"]
    if any(column.note for column in columns):
        notes = (rf"\scriptsize {_escaped(column.note)}" for column in columns)
        heads.append(rf"    {' & '.join(notes)} \\")
    body = [
        rf"    {' & '.join([_row_head(head), *(_number(number) for number in numbers)])} \\"
        for head, numbers in table.rows
    ]
    caption = f"{table.title}. {table.caption}".rstrip()
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering\small",
            rf"  \resizebox{{{_AT_MOST_A_LINE}}}{{!}}{{%",
            rf"  \begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"    \toprule",
            *heads,
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}}",
            rf"  \caption{{{_escaped(caption)}}}",
            r"\end{table}",
            "",
        ]
    )


def _row_head(heading: Heading) -> str:
    text = _escaped(heading.text)
    return f"{text} ({_escaped(heading.note)})" if heading.note else text


def _number(number: Number) -> str:
    if number.value is None:
        return "--"
    text = f"{number.value:.1f}{'*' if number.partial else ''}"
    if number.best:
        text = rf"\textbf{{{text}}}"
    return text if number.sd is None else rf"{text} $\pm$ {number.sd:.1f}"


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)
