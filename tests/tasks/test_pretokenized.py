"""Texts of examples are split as the model's training text was; offsets and given words stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError
from isoglot.tasks.examples import (
    AlignedPair,
    Analogy,
    BitextEntry,
    Fact,
    LabeledText,
    LexiconEntry,
    MultipleChoice,
    RatedWordPair,
    SentencePair,
    TaggedSentence,
)
from isoglot.tasks.pretokenized import (
    OffsetMap,
    pretokenize_examples,
    pretokenize_text,
)

SPACES = (" ", "  ", "\n", "\u00a0", "\u0007")
WORDS = Pretokenizer({"*": "moses", "zh": "zh"})
FISH = Fact(
    id="",
    relation="",
    group="",
    prompt="渔夫在[Y]。",
    answers=("渔网。",),
    candidates=("渔网。", "他的渔网"),
)


@pytest.mark.parametrize(
    ("language", "example", "changes"),
    [
        ("en", LabeledText(id="", first="No, no.", label="a.b,"), {"first": "No , no ."}),
        ("zh-en", SentencePair(first="渔夫在", second="Is."),
         {"first": "渔夫 在", "second": "Is ."}),
        ("en-zh", BitextEntry(first=None, second="渔夫在"), {"second": "渔夫 在"}),
        ("en", RatedWordPair(first="a,b", second="c", score=1, section="s"), {"first": "a , b"}),
        ("en-zh", LexiconEntry(word="(a)", translations=("渔夫在",)),
         {"word": "( a )", "translations": ("渔夫 在",)}),
        ("en", Analogy(a="a!", b="b!", c="c!", d="d!", section="s"),
         {"a": "a !", "b": "b !", "c": "c !", "d": "d !"}),
        ("en", MultipleChoice(id="", premise="It.", asks="cause", choices=("A!", "B!"), right=0),
         {"premise": "It .", "choices": ("A !", "B !")}),
        ("zh", FISH, {"prompt": "渔夫 在 [Y] 。", "answers": ("渔网 。",),
                      "candidates": ("渔网 。", "他 的 渔网")}),
        ("en", TaggedSentence(id="", words=("(a)", "b."), tags=("O", "O")), {}),
        ("en-zh", AlignedPair(first=("a.",), second=("渔夫在",), sure=frozenset(),
                              possible=frozenset()), {}),
    ],
)  # fmt: skip
def test_every_kind_of_example(language, example, changes):
    assert pretokenize_examples([example], language, WORDS) == [replace(example, **changes)]
    assert pretokenize_examples([example], language, Pretokenizer({})) == [example]


def test_a_language_has_one_way_whatever_its_code():
    words = Pretokenizer({"zho": "none", "*": "moses"})
    assert pretokenize_text("a,b", "zh", words) == "a,b"
    assert pretokenize_text("a,b", "en", words) == "a , b"


@hypothesis_settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_places_lead_back_to_the_text(data):
    parts = ["It", "isn't", "(5%)", "U.S.", "...", ",", "渔夫在", *SPACES]
    text = "".join(data.draw(st.lists(st.sampled_from(parts), min_size=1, max_size=12)))
    language = data.draw(st.sampled_from(["en", "zh"]))
    read = pretokenize_text(text, language, WORDS)
    places = OffsetMap(text, read)
    spans = [(i, j) for i in range(len(read) + 1) for j in range(i, len(read) + 1)]
    found = places.to_original(np.array(spans, np.int32))
    for (i, j), (start, end) in zip(spans, found.tolist(), strict=True):
        assert start <= end
        kept = "".join(text[start:end].replace("\u0007", "").split())
        assert kept == "".join(read[i:j].replace("\u0007", "").split())


def test_a_text_that_was_changed_has_no_places():
    with pytest.raises(CorpusError, match=r"changed a context at ' b c'"):
        OffsetMap("a b c", "a x c")
