"""Fine-tuning a model of pretokenized text: heads read split text, offsets stay the context's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typing_extensions import override

from isoglot.corpus.tokenization.pretokenization import FILE, Pretokenizer
from isoglot.finetuning.classification import MultipleChoiceHead, SequenceClassificationHead
from isoglot.finetuning.data import code_switched
from isoglot.finetuning.question_answering import QuestionAnsweringHead
from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
from isoglot.tasks.examples import Answer, MultipleChoice, Question
from isoglot.tasks.pretokenized import (
    pretokenize_examples,
)
from tests.finetuning.tasks import PairTask, finetuned

WORDS = Pretokenizer({"*": "moses", "zh": "zh"})


@pytest.fixture
def dividing(folder, tmp_path) -> Path:
    """The same model, trained on pretokenized text."""
    place: Path = tmp_path / "dividing"
    shutil.copytree(folder, place)
    WORDS.save(place)
    return place


def asked_about(context: str, text: str) -> Question:
    answer = Answer(text=text, start=context.index(text))
    return Question(id="0", question="kalo, mitu?", context=context, answers=(answer,))


CONTEXT = "kalo(mitu)sera, nope:  tulo(sera;mi)  kalo."


@pytest.mark.parametrize("answer", ["mitu", "(mitu)", "nope:  tulo", "sera;mi", "kalo"])
def test_answers_are_the_contexts_own_characters(dividing, settings, answer):
    head = QuestionAnsweringHead(dividing, settings, [])
    (example,) = pretokenize_examples([asked_about(CONTEXT, answer)], "aa", head.pretokenization)
    assert example.split_context is not None
    assert example.question == "kalo , mitu ?"
    assert example.split_context == "kalo ( mitu ) sera , nope : tulo ( sera ; mi ) kalo ."
    training = head.windows([example], training=True)
    windows = [head.tokenizer.decode(p.sequences[0]["input_ids"]) for p in training]
    assert not any("kalo(" in window for window in windows)
    logits = []
    for piece in training:
        start, end = torch.zeros(2, len(piece.sequences[0]["input_ids"]))
        start[piece.targets["start_positions"]] = end[piece.targets["end_positions"]] = 9.0
        logits.append((start, end))
    assert any(piece.targets["start_positions"] for piece in training)
    assert head.decode([example], head.windows([example], training=False), logits) == [answer]


def test_switched_questions_keep_each_texts_own_words():
    def of(language: str, text: str) -> Question:
        (example,) = pretokenize_examples(
            [Question(id="0", question=text, context=text, answers=())], language, WORDS
        )
        return example

    first, second = code_switched(of("zh", "渔夫在"), of("en", "No."))
    assert (first.question, first.context, first.split_context) == ("渔夫 在", "No.", "No .")
    assert (second.question, second.context, second.split_context) == ("No .", "渔夫在", "渔夫 在")


def test_copas_questions_are_divided_too(dividing, settings, monkeypatch):
    read: list[str] = []
    head = MultipleChoiceHead(dividing, settings, [])
    tokens = head.tokenize

    def heard(first, second, **options):
        read.extend(first)
        return tokens(first, second, **options)

    monkeypatch.setattr(head, "tokenize", heard)
    example = MultipleChoice(id="", premise="kalo .", asks="effect", choices=("a", "b"), right=0)
    head.windows([example], training=False)
    assert read == ["kalo . What happened as a result ?"] * 2


class DottedTask(PairTask):
    @override
    def read(self, part):
        return [replace(e, first=f"{e.first}(kalo).") for e in super().read(part)]


def test_training_and_scoring_read_the_same_and_a_kept_model_says_how(
    dividing, tmp_path, monkeypatch
):
    read: dict[bool, list[str]] = {True: [], False: []}
    encode = SequenceClassificationHead.encode

    def heard(self, examples, *, training):
        read[training] += [example.first for example in examples]
        return encode(self, examples, training=training)

    monkeypatch.setattr(SequenceClassificationHead, "encode", heard)
    asked = FinetuneRequest(
        scenario=ScenarioConfig(name="zero-shot", sources=("aa",)),
        protocol="testbed",
        changes={"epochs": 1, "batch_size": 4, "selection": "all-dev"},
        seeds=(0,),
    )
    list(finetuned(dividing, DottedTask(), tmp_path, asked, save_models=tmp_path / "kept"))
    assert len(read[True]) == PairTask.number
    assert len(read[False]) == 6 * PairTask.number, "dev and test of three languages"
    assert all(text.endswith(" ( kalo ) .") for text in read[True] + read[False])
    (kept,) = (tmp_path / "kept").iterdir()
    for folder in (kept, kept / "encoder"):
        assert (folder / FILE).read_text() == (dividing / FILE).read_text()
