"""Cutting text into sentences: where, and that links come along exactly."""

from __future__ import annotations

import pytest

from isoglot.corpus.knowledge.markup.sentences import SentenceSplitter
from isoglot.corpus.knowledge.markup.text import Link, LinkedText


def split(language: str, text: str, *anchors: str) -> list[str]:
    """The sentences; every anchor must be found again in one of them."""
    links = [Link(text.index(a), text.index(a) + len(a), a.upper()) for a in anchors]
    sentences = list(SentenceSplitter(language).split(LinkedText(text, links)))
    assert [s.text[a:b] for s in sentences for a, b, _ in s.links] == list(anchors)
    return [sentence.text for sentence in sentences]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "One here. Two there! Three?", ["One here.", "Two there!", "Three?"]),
        ("en", "Dr. Smith met J. F. Kennedy in the U.S. in 1960. Then he left.",
         ["Dr. Smith met J. F. Kennedy in the U.S. in 1960.", "Then he left."]),
        ("en", 'He said "Stop." She did.', ['He said "Stop."', "She did."]),
        ("en", "A line\nanother. Third", ["A line", "another.", "Third"]),
        ("en", "In 1990. 2000 people came.", ["In 1990.", "2000 people came."]),
        ("de", "Am 3. Oktober 1990. Danach z. B. nichts.",
         ["Am 3. Oktober 1990.", "Danach z. B. nichts."]),
        ("ru", "В 1582 г. Рим принял его. Потом все.", ["В 1582 г. Рим принял его.", "Потом все."]),
        ("zh", "柏林是首都。它很大！是吗？", ["柏林是首都。", "它很大！", "是吗？"]),
        ("hi", "यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"]),
        ("ur", "یہ ہے۔ وہ ہے۔", ["یہ ہے۔", "وہ ہے۔"]),
        ("ar", "هل هذا؟ نعم.", ["هل هذا؟", "نعم."]),
    ],
)  # fmt: skip
def test_where_sentences_end(language, text, expected):
    assert split(language, text) == expected


def test_no_cut_inside_a_link():
    assert split("en", "See Who? Me. Now it ends. Yes.", "Who? Me. Now") == [
        "See Who? Me. Now it ends.",
        "Yes.",
    ]


def test_thai_is_cut_at_spaces():
    text = " ".join(["ก" * 50] * 10)
    parts = split("th", text, "ก" * 50)
    assert len(parts) > 1
    assert " ".join(parts) == text
    assert all(len(part) <= 220 for part in parts)


def test_what_has_no_letter_gives_no_text_but_its_links():
    found = list(SentenceSplitter("en").split(LinkedText("1776\nWords.", [Link(0, 4, "1776")])))
    assert [(s.text, s.links) for s in found] == [("", [(0, 4, "1776")]), ("Words.", [])]
