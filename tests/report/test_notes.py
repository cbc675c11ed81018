"""Pointing at a number tells its note and no other's, though rows write shared notes once."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from typing_extensions import override

from isoglot.report.page import environment
from isoglot.report.table import Heading, Number, Table, shared_note


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
    html = environment().from_string(source).render(table=table)
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
