"""Text from elsewhere is shown as text, whatever it holds."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from isoglot.explore.markup import MAX_CHARACTERS, cut, html_text, note, sentence, table


class Reader(HTMLParser):
    """The tags, the attributes and the text that a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: list[str | None] = []
        self.text = ""
        self.feed(html)
        self.close()

    @override
    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    @override
    def handle_data(self, data):
        self.text += data


any_text = st.text(max_size=80) | st.sampled_from(
    ["<script>alert(1)</script>", '" onload="x', "&amp;", "</bdi><b>", "<!--", "\u202eevil"]
)


@given(any_text)
def test_any_text_comes_back_as_text(text):
    read = Reader(sentence(text))
    assert read.tags == ["bdi"]
    assert read.text == text
    attribute = Reader(f'<i title="{html_text(text)}">')
    assert (attribute.tags, attribute.values) == (["i"], [text])


@given(any_text, any_text)
def test_a_table_has_no_other_tags_than_its_own(heading, cell):
    read = Reader(table((heading,), [(sentence(cell),)], label=heading))
    assert read.tags == ["div", "table", "thead", "tr", "th", "tbody", "tr", "td", "bdi"]
    assert read.text == heading + cell
    assert heading in read.values


def test_long_text_is_cut_before_it_is_escaped():
    shown = Reader(sentence("&" * 100_000)).text
    assert shown == "&" * MAX_CHARACTERS + "… (100,000 characters)"
    assert len(note("<" * 10**6)) < 10_000


@pytest.mark.parametrize("length", [9, 10, 11])
def test_only_longer_text_is_cut(length):
    assert cut("a" * length, 10) == (
        "a" * length if length < 11 else "a" * 10 + "… (11 characters)"
    )
