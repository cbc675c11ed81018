"""The plan of a fine-tuning: scenarios, labels, and errors that are found before training."""

from __future__ import annotations

from pathlib import Path

import pytest
from typing_extensions import override

from isoglot.errors import CorpusError, IsoglotError, RecipeError
from isoglot.finetuning.plan import FinetunePlan, training_specs
from isoglot.finetuning.protocols import build_request
from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
from isoglot.tasks import find_task
from isoglot.tasks.base import TaskSplit
from tests.finetuning.tasks import PairTask, TwoLanguageTask, UntrainedTask

NOWHERE = Path("nowhere")


def planned(
    task,
    name="zero-shot",
    *,
    source="aa",
    targets=None,
    train_languages=None,
    train_task=None,
    **changes,
):
    scenario = ScenarioConfig(
        name=name, sources=(source,), targets=targets, train_languages=train_languages
    )
    request = FinetuneRequest(scenario=scenario, protocol="testbed", changes=changes)
    return FinetunePlan(task, NOWHERE, request, train_task)


def labels(*arguments, **options) -> list[str]:
    found = planned(*arguments, **options)
    return [found.label(spec) for spec in found.trainings]


def test_the_languages_that_data_were_joined_from_are_named_where_some_are_missing():
    assert labels(PairTask(), "pooled") == ["pooled, testbed"]
    assert labels(PairTask(), "pooled", targets=("cc",)) == ["pooled, testbed"]
    assert labels(TwoLanguageTask(), "pooled") == ["pooled, testbed"]
    assert labels(UntrainedTask(), "pooled") == ["pooled on bb, testbed"]
    assert labels(PairTask(), "pooled", train_languages=("cc", "aa")) == [
        "pooled on aa cc, testbed"
    ]


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
    def splits(self, folder: Path) -> list[TaskSplit]:
        return [part for part in super().splits(folder) if part.name != "train"]


def test_only_transfer_borrows_another_tasks_training_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    NOWHERE.mkdir()
    with pytest.raises(CorpusError, match=r"no files of xnli to train on.*--train-on"):
        planned(Borrower())
    with pytest.raises(CorpusError, match=r"no files of esxnli to train on.*--train-on"):
        planned(Borrower(), "pooled")


def test_xcopa_is_trained_on_copa():
    data = Path(__file__).parent.parent / "tasks/fixtures"
    found = FinetunePlan(find_task("xcopa"), data, FinetuneRequest())
    assert found.train_task.name == "copa"
    assert [(spec.train_languages, spec.test_languages) for spec in found.trainings] == [
        (("en",), ("sw",))
    ]


def test_a_task_that_is_not_trained_for_is_sent_to_evaluate():
    with pytest.raises(IsoglotError, match="isoglot evaluate"):
        planned(find_task("tatoeba"))


def test_a_task_cannot_be_trained_on_one_of_another_kind():
    with pytest.raises(
        IsoglotError, match=r"kinds differ \(text-classification and question-answering\)"
    ):
        planned(PairTask(), train_task=find_task("squad"))


ALL = ("en", "de", "sw")


def made(name, *, sources=("en",), targets=None, train_languages=None, trainable=ALL, scorable=ALL):
    config = ScenarioConfig(
        name=name, sources=sources, targets=targets, train_languages=train_languages
    )
    found = training_specs(config, train_languages=trainable, test_languages=scorable, task="task")
    return [(spec.train_languages, spec.test_languages) for spec in found]


def test_what_each_scenario_trains_on_and_scores():
    assert made("zero-shot") == [(("en",), ALL)]
    assert made("pooled") == made("translate-train-all") == [(ALL, ALL)]
    assert made("supervised") == [((code,), (code,)) for code in ALL]
    assert made("translate-train", targets=("sw",)) == [(("sw",), ("sw",))]


def test_several_sources_give_every_direction():
    found = made("zero-shot", sources=("en", "de"))
    assert found == [(("en",), ALL), (("de",), ALL)]


def test_a_language_without_training_data_is_left_out():
    assert made("supervised", trainable=("en",)) == [(("en",), ("en",))]
    assert made("supervised", trainable=("en",), targets=("en", "sw")) == [(("en",), ("en",))]
    with pytest.raises(CorpusError, match="training data in en, and test data in sw"):
        made("supervised", trainable=("en",), targets=("sw",))


def test_of_the_languages_asked_for_those_are_scored_that_there_are():
    assert made("zero-shot", targets=("sw", "sv")) == [(("en",), ("sw",))]


def test_pairs_are_asked_for_by_their_languages():
    scorable = ("de", "en", "de-en", "en-de", "de-sw")
    ((_, scored),) = made("zero-shot", targets=("de", "en"), scorable=scorable)
    assert scored == ("de", "en", "de-en", "en-de")


@pytest.mark.parametrize("name", ["pooled", "translate-train-all"])
def test_the_languages_of_joined_data_can_be_chosen(name):
    assert made(name, train_languages=("en", "de", "sv")) == [(("en", "de"), ALL)]
    with pytest.raises(
        CorpusError, match="no training data in sv: it has training data in en, de, sw"
    ):
        made(name, train_languages=("sv",))


def test_only_joined_data_are_chosen_from():
    with pytest.raises(RecipeError, match="only with the scenario translate-train-all or pooled"):
        ScenarioConfig(name="zero-shot", train_languages=("en",))


def test_a_scenario_without_a_single_training_is_refused():
    with pytest.raises(CorpusError, match="training data in de, en, and test data in es, nl"):
        made("supervised", trainable=("de", "en"), scorable=("es", "nl"))


def test_faults_are_named():
    with pytest.raises(CorpusError, match="nothing to score in sv: it has test data in en, de, sw"):
        made("zero-shot", targets=("sv",))
    with pytest.raises(RecipeError, match="did you mean 'zero-shot'"):
        ScenarioConfig(name="zeroshot")  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="give one source"):
        ScenarioConfig(name="translate-train", sources=("en", "de"))


def test_training_and_test_data_may_be_in_different_folders(tmp_path):
    row = "sentence1\tsentence2\tlabel\na\tb\tneutral\n"
    for name in ("train/en.train", "train/en.dev", "test/por.test", "test/swa.test"):
        file = tmp_path / name.split("/")[0] / "nli/xnli" / f"{name.split('/')[1]}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(row)
    request = build_request("zero-shot", ["eng"], ["por", "swh"], None, "xtreme", {}, 1)
    folders = tmp_path / "train", tmp_path / "test"
    (spec,) = FinetunePlan(find_task("xnli"), folders, request).trainings
    assert (spec.train_languages, spec.test_languages) == (("en",), ("pt", "sw"))
    with pytest.raises(CorpusError, match="test has no files of xnli to train on"):
        FinetunePlan(find_task("xnli"), tmp_path / "test", request)
    with pytest.raises(CorpusError, match="nowhere: there is no such folder"):
        FinetunePlan(find_task("xnli"), NOWHERE, request)
