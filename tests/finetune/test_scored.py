"""What is scored is looked through before anything is trained."""

from __future__ import annotations

from dataclasses import replace

import pytest
from typing_extensions import override

from isoglot.errors import CorpusError, IsoglotError
from isoglot.finetune.run import finetune_and_score
from isoglot.tasks.base import Part
from isoglot.tasks.examples import Classified, Question
from isoglot.tasks.squad_v2 import SquadV2
from tests.finetune.tasks import PairTask, questions
from tests.finetune.test_run import asked


@pytest.fixture
def untrained(monkeypatch):
    """Nothing may be trained."""

    def train(*_, **__):
        pytest.fail("a training began")

    monkeypatch.setattr("isoglot.finetune.training.train", train)


class SpoiltTask(PairTask):
    """One of its test parts is damaged, another is empty."""

    @override
    def read(self, part: Part) -> list[Classified]:
        if (part.language, part.split) == ("bb", "test"):
            raise CorpusError("bb.test, line 7: is damaged.")
        if (part.language, part.split) == ("cc", "test"):
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
        list(finetune_and_score(folder, SpoiltTask(), tmp_path, asked(targets=(language,))))


class RenamedTask(PairTask):
    """Its labels are others."""

    name = "renamed"

    @override
    def read(self, part: Part) -> list[Classified]:
        return [replace(example, label=f"{example.label}!") for example in super().read(part)]


@pytest.mark.usefixtures("untrained")
def test_labels_that_training_does_not_teach_are_refused(folder, tmp_path):
    with pytest.raises(IsoglotError, match=r"labels other!, same! in 'aa'.*pairs knows none"):
        list(finetune_and_score(folder, RenamedTask(), tmp_path, asked(), train_task=PairTask()))


def test_a_few_examples_evenly_spaced(folder, tmp_path):
    counted = []

    class Listening(PairTask):
        @override
        def score(self, examples, predictions, language) -> dict[str, float]:
            counted.append([example.id for example in examples])
            return super().score(examples, predictions, language)

    few = asked(targets=("aa",), max_scored=3)
    ((score,),) = finetune_and_score(folder, Listening(), tmp_path, few)
    assert counted == [["test 0", "test 4", "test 8"]]
    assert score.count == 3
    assert "max_scored=3" in str(score.scenario)


class AnswerableTask(SquadV2):
    """Every question has an answer."""

    @override
    def parts(self, folder):
        return [Part("aa", "train", ()), Part("aa", "test", ())]

    @override
    def read(self, part: Part) -> list[Question]:
        return questions(4, length=12)


def test_questions_that_all_have_an_answer(folder, tmp_path):
    (scores,) = finetune_and_score(folder, AnswerableTask(), tmp_path, asked(max_length=24))
    assert [score.metric for score in scores] == ["f1", "exact", "HasAns_f1", "HasAns_exact"]
