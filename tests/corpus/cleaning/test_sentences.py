from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.cleaning import sentences
from isoglot.corpus.cleaning.sentences import sentence_splitter

PARTS = st.sampled_from([*"aB.!?。\"') \n\r1", "Mr.", "e.g. ", "。”", "\u3000", "Then we left. "])
TEXTS = st.lists(PARTS, max_size=40).map("".join)


@pytest.mark.parametrize(
    ("mode", "text", "expected"),
    [
        ("none", "One.\nTwo.", ["One.\nTwo."]),
        ("lines", "One. Two.\r\n \n\nThree.\r", ["One. Two.", "Three."]),
        ("lines", " \n", [""]),
        ("lines", "a\u2028b\x0cc", ["a\u2028b\x0cc"]),
        ("punctuation", "One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        (
            "punctuation",
            'He met J. Smith. "Yes!" she said.',
            ["He met J. Smith.", '"Yes!" she said.'],
        ),
        ("punctuation", "你好。你好吗？好！", ["你好。", "你好吗？", "好！"]),
        ("punctuation", "बूढ़ा है। बारिश।", ["बूढ़ा है।", "बारिश।"]),
        ("punctuation", "كيف حالك؟ جيد.", ["كيف حالك؟", "جيد."]),
        ("punctuation", "Wait... what? ok", ["Wait... what? ok"]),
        ("punctuation", "", [""]),
        (
            "sentences",
            "Mr. Smith came at 5 p.m. yesterday. He left.\nSo.",
            ["Mr. Smith came at 5 p.m. yesterday.", "He left.", "So."],
        ),
    ],
)
def test_splitting(mode, text, expected):
    assert sentence_splitter(mode, "en")(text) == expected


def test_a_language_without_rules_is_split_by_punctuation():
    assert sentence_splitter("sentences", "sw")("Habari. Nzuri!") == ["Habari.", "Nzuri!"]
    assert sentence_splitter("sentences", "ar")("أحمد، ومحمد. وعلي.") == ["أحمد، ومحمد.", "وعلي."]
    assert sentence_splitter("sentences", "deu")("Am 3. Mai kam er. Sie ging.") == [
        "Am 3. Mai kam er.",
        "Sie ging.",
    ]


@pytest.mark.parametrize("mode", ["lines", "punctuation", "sentences"])
@settings(max_examples=80, deadline=None)
@given(text=TEXTS)
def test_nothing_is_lost(mode, text):
    pieces = sentence_splitter(mode, "en")(text)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert pieces
    assert all(piece.strip() for piece in pieces) or len(pieces) == 1


def test_a_splitter_that_loses_text_is_not_believed(monkeypatch):
    class Lossy:
        def segment(self, text):
            return [text[:5]]

    monkeypatch.setattr(sentences, "_segmenter", lambda language: Lossy())
    assert sentence_splitter("sentences", "en")("One is here. Two is there.") == [
        "One is here.",
        "Two is there.",
    ]


@pytest.mark.parametrize(
    "text", ["." * 1_000_000, "a" * 1_000_000, '."' * 500_000, "!? " * 10_000, "Word. " * 1000]
)
def test_no_text_takes_for_ever(text):
    for mode in ("punctuation", "sentences"):
        began = time.perf_counter()
        sentence_splitter(mode, "en")(text)
        assert time.perf_counter() - began < 60


PLAIN = re.compile(
    r"(?<![.!?…؟۔।॥።։။])(?:(?<!\b\w)\.|[.!?…؟۔।॥።։။]{2,}|[!?…؟۔।॥።։။])[\"'”’»)\]」』）]*\s+"
    r"|(?<![。！？｡])[。！？｡]+[\"'”’»)\]」』）]*\s*"
)
"""Sentence ends, written as they are explained."""


@settings(max_examples=400)
@given(st.lists(PARTS | st.sampled_from([*".?…।॥！｡»」_éक"]), max_size=30).map("".join))
def test_ends_are_those_of_the_plain_pattern(text):
    found = [match.span() for match in sentences._SENTENCE_ENDS.finditer(text)]
    assert found == [match.span() for match in PLAIN.finditer(text)]
