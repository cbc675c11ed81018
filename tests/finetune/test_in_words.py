"""Texts of examples are divided as the model's training text was; places and given words stay."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from typing_extensions import override

from isoglot.corpus.pretokenize import FILE, Pretokenization
from isoglot.errors import CorpusError
from isoglot.finetune.asked import Finetuning
from isoglot.finetune.choice import Choose
from isoglot.finetune.classify import Classify
from isoglot.finetune.code_switch import switched
from isoglot.finetune.in_words import DividedQuestion, Places, divided, in_words
from isoglot.finetune.run import finetune_and_score
from isoglot.finetune.scenarios import ScenarioConfig
from isoglot.finetune.span import Answers
from isoglot.tasks.examples import (
    Analogy,
    Answer,
    Choice,
    Classified,
    Entry,
    Fact,
    Likeness,
    Mined,
    Question,
    Tagged,
    Translated,
    WordAligned,
)
from tests.finetune.tasks import PairTask

SPACES = (" ", "  ", "\n", "\u00a0", "\u0007")
WORDS = Pretokenization({"*": "moses", "zh": "zh"})
FISH = Fact(
    id="",
    relation="",
    group="",
    prompt="渔夫在[Y]。",
    answers=("渔网。",),
    candidates=("渔网。", "他的渔网"),
)


@pytest.fixture
def dividing(folder, tmp_path) -> Path:
    """The same model, of text that was divided into words."""
    place: Path = tmp_path / "dividing"
    shutil.copytree(folder, place)
    WORDS.save(place)
    return place


@pytest.mark.parametrize(
    ("language", "example", "changes"),
    [
        ("en", Classified(id="", first="No, no.", label="a.b,"), {"first": "No , no ."}),
        ("zh-en", Translated(first="渔夫在", second="Is."), {"first": "渔夫 在", "second": "Is ."}),
        ("en-zh", Mined(first=None, second="渔夫在"), {"second": "渔夫 在"}),
        ("en", Likeness(first="a,b", second="c", score=1, section="s"), {"first": "a , b"}),
        ("en-zh", Entry(word="(a)", translations=("渔夫在",)),
         {"word": "( a )", "translations": ("渔夫 在",)}),
        ("en", Analogy(a="a!", b="b!", c="c!", d="d!", section="s"),
         {"a": "a !", "b": "b !", "c": "c !", "d": "d !"}),
        ("en", Choice(id="", premise="It.", asks="cause", choices=("A!", "B!"), right=0),
         {"premise": "It .", "choices": ("A !", "B !")}),
        ("zh", FISH, {"prompt": "渔夫 在 [Y] 。", "answers": ("渔网 。",),
                      "candidates": ("渔网 。", "他 的 渔网")}),
        ("en", Tagged(id="", words=("(a)", "b."), tags=("O", "O")), {}),
        ("en-zh", WordAligned(first=("a.",), second=("渔夫在",), sure=frozenset(),
                              possible=frozenset()), {}),
    ],
)  # fmt: skip
def test_every_kind_of_example(language, example, changes):
    assert in_words([example], language, WORDS) == [replace(example, **changes)]
    assert in_words([example], language, Pretokenization({})) == [example]


def test_a_language_has_one_way_whatever_its_code():
    words = Pretokenization({"zho": "none", "*": "moses"})
    assert divided("a,b", "zh", words) == "a,b"
    assert divided("a,b", "en", words) == "a , b"


@hypothesis_settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_places_lead_back_to_the_text(data):
    parts = ["It", "isn't", "(5%)", "U.S.", "...", ",", "渔夫在", *SPACES]
    text = "".join(data.draw(st.lists(st.sampled_from(parts), min_size=1, max_size=12)))
    language = data.draw(st.sampled_from(["en", "zh"]))
    read = divided(text, language, WORDS)
    places = Places(text, read)
    spans = [(i, j) for i in range(len(read) + 1) for j in range(i, len(read) + 1)]
    found = places.of(np.array(spans, np.int32))
    for (i, j), (start, end) in zip(spans, found.tolist(), strict=True):
        assert start <= end
        kept = "".join(text[start:end].replace("\u0007", "").split())
        assert kept == "".join(read[i:j].replace("\u0007", "").split())


def test_a_text_that_was_changed_has_no_places():
    with pytest.raises(CorpusError, match=r"changed its text at ' b c'"):
        Places("a b c", "a x c")


def asked_about(context: str, text: str) -> Question:
    answer = Answer(text=text, start=context.index(text))
    return Question(id="0", question="kalo, mitu?", context=context, answers=(answer,))


CONTEXT = "kalo(mitu)sera, nope:  tulo(sera;mi)  kalo."


@pytest.mark.parametrize("answer", ["mitu", "(mitu)", "nope:  tulo", "sera;mi", "kalo"])
def test_answers_are_the_contexts_own_characters(dividing, settings, answer):
    head = Answers(dividing, settings, [])
    (example,) = in_words([asked_about(CONTEXT, answer)], "aa", head.words)
    assert isinstance(example, DividedQuestion)
    assert example.question == "kalo , mitu ?"
    assert example.divided == "kalo ( mitu ) sera , nope : tulo ( sera ; mi ) kalo ."
    training = head.pieces([example], training=True)
    windows = [head.tokenizer.decode(p.rows[0]["input_ids"]) for p in training]
    assert not any("kalo(" in window for window in windows)
    logits = []
    for piece in training:
        start, end = torch.zeros(2, len(piece.rows[0]["input_ids"]))
        start[piece.targets["start_positions"]] = end[piece.targets["end_positions"]] = 9.0
        logits.append((start, end))
    assert any(piece.targets["start_positions"] for piece in training)
    assert head.predict([example], head.pieces([example], training=False), logits) == [answer]


def test_switched_questions_keep_each_texts_own_words():
    def of(language: str, text: str) -> Question:
        (example,) = in_words(
            [Question(id="0", question=text, context=text, answers=())], language, WORDS
        )
        return example

    ((first, second),) = switched(
        [of("zh", "渔夫在")], [of("en", "No.")], language="zh", original_language="en"
    )
    assert (first.question, first.context, first.divided) == ("渔夫 在", "No.", "No .")
    assert (second.question, second.context, second.divided) == ("No .", "渔夫在", "渔夫 在")


def test_copas_questions_are_divided_too(dividing, settings, monkeypatch):
    read: list[str] = []
    head = Choose(dividing, settings, [])
    tokens = head.tokens

    def heard(first, second, **options):
        read.extend(first)
        return tokens(first, second, **options)

    monkeypatch.setattr(head, "tokens", heard)
    example = Choice(id="", premise="kalo .", asks="effect", choices=("a", "b"), right=0)
    head.pieces([example], training=False)
    assert read == ["kalo . What happened as a result ?"] * 2


class DottedTask(PairTask):
    @override
    def read(self, part):
        return [replace(e, first=f"{e.first}(kalo).") for e in super().read(part)]


def test_training_and_scoring_read_the_same_and_a_kept_model_says_how(
    dividing, tmp_path, monkeypatch
):
    read: dict[bool, list[str]] = {True: [], False: []}
    encode = Classify.encode

    def heard(self, examples, *, training):
        read[training] += [example.first for example in examples]
        return encode(self, examples, training=training)

    monkeypatch.setattr(Classify, "encode", heard)
    asked = Finetuning(
        scenario=ScenarioConfig(name="zero-shot", sources=("aa",)),
        protocol="testbed",
        changes={"epochs": 1, "batch_size": 4, "selection": "all-dev"},
        seeds=(0,),
    )
    list(finetune_and_score(dividing, DottedTask(), tmp_path, asked, keep=tmp_path / "kept"))
    assert len(read[True]) == PairTask.number
    assert len(read[False]) == 6 * PairTask.number, "dev and test of three languages"
    assert all(text.endswith(" ( kalo ) .") for text in read[True] + read[False])
    (kept,) = (tmp_path / "kept").iterdir()
    for folder in (kept, kept / "encoder"):
        assert (folder / FILE).read_text() == (dividing / FILE).read_text()
