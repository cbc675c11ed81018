"""What is known of a fine-tuning before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from typing_extensions import override

from isoglot.errors import CorpusError, IsoglotError
from isoglot.finetune.asked import Finetuning
from isoglot.finetune.prepared import Prepared
from isoglot.finetune.scenarios import ScenarioConfig
from isoglot.tasks import find_task
from isoglot.tasks.base import Part
from tests.finetune.tasks import PairTask, TwoLanguageTask, UntrainedTask

NOWHERE = Path("nowhere")


def prepared(
    task, name="zero-shot", *, source="aa", targets=None, trained=None, train_task=None, **changes
):
    scenario = ScenarioConfig(name=name, sources=(source,), targets=targets, trained=trained)
    asked = Finetuning(scenario=scenario, protocol="testbed", changes=changes)
    return Prepared(task, NOWHERE, asked, train_task)


def labels(*arguments, **options) -> list[str]:
    found = prepared(*arguments, **options)
    return [found.label(plan) for plan in found.plans]


def test_the_languages_that_data_were_joined_from_are_named_where_some_are_missing():
    assert labels(PairTask(), "pooled") == ["pooled, testbed"]
    assert labels(PairTask(), "pooled", targets=("cc",)) == ["pooled, testbed"]
    assert labels(TwoLanguageTask(), "pooled") == ["pooled, testbed"]
    assert labels(UntrainedTask(), "pooled") == ["pooled on bb, testbed"]
    assert labels(PairTask(), "pooled", trained=("cc", "aa")) == ["pooled on aa cc, testbed"]


def test_the_languages_that_chose_are_named_where_some_did_not():
    rule = {"selection": "all-dev"}
    every = "zero-shot from aa, testbed, selection=all-dev"
    assert labels(TwoLanguageTask(), **rule) == [every]
    assert labels(PairTask(), targets=("cc", "bb"), **rule) == [f"{every}, chosen on bb cc"]
    assert labels(PairTask(), targets=("cc",)) == ["zero-shot from aa, testbed"]


class Borrower(PairTask):
    """A task that papers train on XNLI, without training data of its own."""

    name = "esxnli"

    @override
    def parts(self, folder: Path) -> list[Part]:
        return [part for part in super().parts(folder) if part.split != "train"]


def test_only_transfer_borrows_another_tasks_training_data():
    with pytest.raises(CorpusError, match=r"no files of xnli to train on.*--train-on"):
        prepared(Borrower())
    with pytest.raises(CorpusError, match=r"no files of esxnli to train on.*--train-on"):
        prepared(Borrower(), "pooled")


def test_xcopa_is_trained_on_copa():
    data = Path(__file__).parent.parent / "tasks/fixtures"
    found = Prepared(find_task("xcopa"), data, Finetuning())
    assert found.train_task.name == "copa"
    assert [(plan.train, plan.score) for plan in found.plans] == [(("en",), ("sw",))]


def test_a_task_that_is_not_trained_for_is_sent_to_evaluate():
    with pytest.raises(IsoglotError, match="isoglot evaluate"):
        prepared(find_task("tatoeba"))


def test_a_task_cannot_be_trained_on_one_of_another_kind():
    with pytest.raises(IsoglotError, match="kind classify, the other span"):
        prepared(PairTask(), train_task=find_task("squad"))
