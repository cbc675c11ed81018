"""Tables that fit a page, their Markdown and LaTeX, and the notes of numbers on the page."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from typing_extensions import override

from isoglot.report.page import _environment
from isoglot.report.tables import (
    MAX_COLUMNS,
    Heading,
    Number,
    Table,
    shared_note,
    to_latex,
    to_markdown,
)


class Cells(HTMLParser):
    """What a browser shows over each cell (its title, or else its row's), and in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.row: str = ""
        self.found: list[tuple[str, str]] = []
        self.feed(html)

    @override
    def handle_starttag(self, tag, attrs):
        title = dict(attrs).get("title", self.row if tag in {"td", "th"} else "") or ""
        if tag == "tr":
            self.row = title
        elif tag in {"td", "th"}:
            self.found.append((title, ""))

    @override
    def handle_data(self, data):
        if self.found:
            title, text = self.found[-1]
            self.found[-1] = title, text + data.strip()


def cells(*notes: str | None) -> list[tuple[str, str]]:
    """The cells of a row of numbers with these notes; none: without a number."""
    numbers = tuple(Number() if n is None else Number(value=1.0, note=n) for n in notes)
    columns = tuple(Heading(text="c") for _ in notes)
    row = Heading(text="r"), numbers
    table = Table(title="", caption="", corner="x", columns=columns, rows=(row,))
    source = '{% from "table.html" import number_table %}{{ number_table(table) }}'
    html = _environment().from_string(source).render(table=table)
    assert html.count('title="a &lt; &#34;b"') <= 1, "a note that cells share is written once"
    return Cells(html).found[len(notes) + 1 :]


@pytest.mark.parametrize(
    "notes",
    [
        ('a < "b', 'a < "b', "c", "", None),
        ('a < "b', "c", None),
        ("", "", 'a < "b'),
        (None, None),
        (),
    ],
)
def test_every_number_has_its_own_note_and_nothing_else_has_one(notes):
    expected = [("", "") if note is None else (note, "1.0") for note in notes]
    assert cells(*notes) == [("", "r"), *expected]


def test_the_shared_note_is_the_most_frequent_of_at_least_two():
    row = [Number(value=1.0, note=note) for note in "abbac"]
    assert shared_note([*row, Number(value=2.0, note="b"), Number()]) == "b"
    assert shared_note(row[:2]) == ""


def wide(columns: int, rows: int) -> Table:
    return Table(
        title="t",
        caption="c",
        corner="x",
        columns=tuple(Heading(text=f"c{n}") for n in range(columns)),
        rows=tuple(
            (Heading(text=f"r{m}"), tuple(Number(value=100.0 * m + n) for n in range(columns)))
            for m in range(rows)
        ),
    )


def test_a_wide_table_is_transposed_only_where_that_is_no_longer():
    assert [len(piece.rows) for piece in wide(41, 1).split()] == [1, 1, 1]
    assert [len(piece.rows) for piece in wide(40, 19).split()] == [19, 19]
    assert [len(piece.rows) for piece in wide(40, 20).split()] == [40]
    assert [len(piece.rows) for piece in wide(41, 20).split()] == [41]


@pytest.mark.parametrize(("columns", "rows"), [(5, 3), (41, 20), (41, 30), (60, 80)])
def test_pieces_hold_every_number_once_and_fit(columns, rows):
    pieces = wide(columns, rows).split()
    assert all(len(piece.columns) <= MAX_COLUMNS for piece in pieces)
    values = [n.value for piece in pieces for _, numbers in piece.rows for n in numbers]
    assert sorted(v for v in values if v is not None) == [
        100.0 * m + n for m in range(rows) for n in range(columns)
    ]


def test_marks_of_the_best_and_of_the_partial_in_text_and_tex():
    numbers = (Number(value=1.0, best=True, sd=0.25), Number(value=2.0, partial=True), Number())
    columns = tuple(Heading(text=name, note="F1 ↓") for name in "xyz")
    table = Table(
        title="t", caption="c", corner="m", columns=columns, rows=((Heading(text="r"), numbers),)
    )
    assert r"| r | **1.0** ± 0.2 | 2.0\* |  |" in to_markdown([table])
    assert r"r & \textbf{1.0} $\pm$ 0.2 & 2.0* & -- \\" in to_latex([table])
    assert r"m & x & y & z \\" in to_latex([table])
    assert r"& \scriptsize F1 $\downarrow$ \\" in to_latex([table])
