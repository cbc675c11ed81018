"""Translations, code-switching, and test sets that are checked before training."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from typing_extensions import override

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError, IsoglotError
from isoglot.finetuning import data as data_module
from isoglot.finetuning.data import code_switched, paired_with_originals
from isoglot.finetuning.settings import FinetuneConfig
from isoglot.tasks.base import TaskSplit
from isoglot.tasks.examples import Answer, LabeledText, Question
from isoglot.tasks.squad import SquadV2
from tests.finetuning.tasks import PairTask, finetuned, questions
from tests.finetuning.test_finetune import request

ENGLISH = Question(
    id="7",
    question="Who sleeps?",
    context="The cat sleeps.",
    answers=(Answer(text="The cat", start=0),),
)
SPANISH = Question(
    id="7",
    question="¿Quién duerme?",
    context="Hoy duerme el gato.",
    answers=(Answer(text="el gato", start=11),),
)


def mixed(translated, originals):
    pairs = paired_with_originals(translated, originals, language="es", original_language="en")
    return [code_switched(*pair) for pair in pairs]


def test_the_answer_is_that_of_the_contexts_language():
    ((first, second),) = mixed([SPANISH], [ENGLISH])
    assert (first.question, first.context) == (SPANISH.question, ENGLISH.context)
    assert (second.question, second.context) == (ENGLISH.question, SPANISH.context)
    for question in (first, second):
        (answer,) = question.answers
        end = answer.start + len(answer.text)
        assert question.context[answer.start : end] == answer.text


def test_both_halves_of_a_pair_and_never_the_pure_one():
    english = LabeledText(id="1", first="a", second="b", label="same")
    spanish = LabeledText(id="1", first="x", second="y", label="same")
    ((first, second),) = mixed([spanish], [LabeledText(id="0", first="p", label="q"), english])
    assert {(e.first, e.second, e.label) for e in (first, second)} == {
        ("x", "b", "same"),
        ("a", "y", "same"),
    }


def test_a_row_without_its_original_is_named():
    with pytest.raises(CorpusError, match=r"1 of 1 training rows of 'es' \(the first is '7'\)"):
        mixed([SPANISH], [])


def test_rows_whose_ids_join_but_whose_labels_differ_are_refused():
    english = LabeledText(id="1", first="a", second="b", label="same")
    swahili = LabeledText(id="1", first="x", second="y", label="other")
    with pytest.raises(CorpusError, match=r"1 of 1 .*'1'.* the labels of rows with the same id"):
        mixed([swahili], [english])


def test_one_sentence_cannot_be_switched():
    single = LabeledText(id="1", first="a", label="x")
    with pytest.raises(CorpusError, match="examples with two texts"):
        mixed([single], [single])


@pytest.fixture
def untrained(monkeypatch):
    """Nothing may be trained."""

    def train(*_, **__):
        pytest.fail("a training began")

    monkeypatch.setattr("isoglot.finetuning.train.train", train)


class SpoiltTask(PairTask):
    """One of its test parts is damaged, another is empty."""

    @override
    def read(self, part: TaskSplit) -> list[LabeledText]:
        if (part.language, part.name) == ("bb", "test"):
            raise CorpusError("bb.test, line 7: is damaged.")
        if (part.language, part.name) == ("cc", "test"):
            return []
        return super().read(part)


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("language", "message"),
    [("bb", "line 7: is damaged"), ("cc", "test part of pairs for 'cc' in .* has no example")],
)
def test_a_part_that_cannot_be_scored_ends_the_run_before_training(
    folder, tmp_path, language, message
):
    with pytest.raises(CorpusError, match=message):
        list(finetuned(folder, SpoiltTask(), tmp_path, request(targets=(language,))))


class RenamedTask(PairTask):
    """Its labels are others."""

    name = "renamed"

    @override
    def read(self, part: TaskSplit) -> list[LabeledText]:
        return [replace(example, label=f"{example.label}!") for example in super().read(part)]


@pytest.mark.usefixtures("untrained")
def test_labels_that_training_does_not_teach_are_refused(folder, tmp_path):
    with pytest.raises(
        IsoglotError, match=r"labels other!, same! in 'aa', none of which pairs has"
    ):
        list(finetuned(folder, RenamedTask(), tmp_path, request(), train_task=PairTask()))


def test_a_few_examples_of_all_parts(folder, tmp_path):
    counted = []

    class Listening(PairTask):
        @override
        def score(self, examples, predictions, language) -> dict[str, float]:
            counted.append([example.id for example in examples])
            return super().score(examples, predictions, language)

    few = request(targets=("aa",), max_test_examples=3)
    ((score,),) = finetuned(folder, Listening(), tmp_path, few)
    assert max(counted, key=len) == ["test 0", "test 6", "test 9"]
    assert score.count == 3
    assert "max_test_examples=3" in str(score.scenario)


class AnswerableTask(SquadV2):
    """Every question has an answer."""

    @override
    def splits(self, folder):
        return [TaskSplit("aa", "train", ()), TaskSplit("aa", "test", ())]

    @override
    def read(self, part: TaskSplit) -> list[Question]:
        return questions(4, length=12)


def test_questions_that_all_have_an_answer(folder, tmp_path):
    (scores,) = finetuned(folder, AnswerableTask(), tmp_path, request(max_length=24))
    assert [score.metric for score in scores] == [
        "f1", "exact", "HasAns_f1", "HasAns_exact", "best_f1", "best_exact",
    ]  # fmt: skip


def test_both_halves_of_a_switched_pair_are_named_in_every_language(monkeypatch):
    monkeypatch.setattr(
        data_module, "read_examples", lambda *a, **_: [f"{a[2]}{i}" for i in range(3)]
    )
    monkeypatch.setattr(
        data_module,
        "paired_with_originals",
        lambda own, originals, **_: list(zip(own, originals, strict=True)),
    )
    monkeypatch.setattr(data_module, "code_switched", lambda one, other: (one, other))
    spec: Any = SimpleNamespace(original_language="en", train_languages=("en", "de", "sw"))
    nothing: Any = None
    found = data_module.training_data(
        nothing, (), spec, FinetuneConfig(code_switch=True), Pretokenizer({})
    )
    assert len(found.examples) == 3 + 6 + 6
    assert [(found.examples[a], found.examples[b]) for a, b in found.pairs] == [
        (f"{language}{i}", f"en{i}") for language in ("de", "sw") for i in range(3)
    ]
    assert len(found.languages) == len(found.examples)
