"""Tables as Markdown, for a README or an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.report.table import Heading, Number, Table


def markdown(tables: Iterable[Table]) -> str:
    """All tables, each under a heading, with its caption below it."""
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    heads = [_escaped(table.corner), *(_head(column) for column in table.columns)]
    lines = [
        f"## {_escaped(table.title)}",
        "",
        f"| {' | '.join(heads)} |",
        f"| --- |{' ---: |' * len(table.columns)}",
    ]
    lines += [
        f"| {' | '.join([_head(head), *(_number(number) for number in numbers)])} |"
        for head, numbers in table.rows
    ]
    return "\n".join([*lines, "", table.caption, ""])


def _head(heading: Heading) -> str:
    text = _escaped(heading.text)
    return f"{text} ({_escaped(heading.note)})" if heading.note else text


def _number(number: Number) -> str:
    if number.value is None:
        return ""
    text = f"{number.value:.1f}"
    if number.best:
        text = f"**{text}**"
    if number.partial:
        text += "\\*"
    return text if number.sd is None else f"{text} ± {number.sd:.1f}"


def _escaped(text: str) -> str:
    for mark in "\\|*_<":
        text = text.replace(mark, f"\\{mark}")
    return text
