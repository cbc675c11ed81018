"""Files of another model, protocol or data set are never taken for those of this training."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM
from typing_extensions import override

from isoglot.errors import ModelError
from isoglot.finetuning.record import RECORD
from isoglot.tasks.base import TaskSplit
from tests.finetuning.tasks import PairTask, finetuned
from tests.finetuning.test_finetune import request


class FileTask(PairTask):
    """Each split has a file whose content is only looked at, not read."""

    name = "on-files"

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        return [
            TaskSplit(part.language, part.name, (folder / f"{part.language}.{part.name}",))
            for part in super().splits(folder)
        ]


@pytest.fixture
def data(tmp_path) -> Path:
    place = tmp_path / "data"
    place.mkdir()
    for part in FileTask().splits(place):
        part.files[0].write_text(f"{part.language} {part.name}")
    return place


@pytest.fixture
def other_model(folder, tmp_path) -> Path:
    place = tmp_path / "other"
    shutil.copytree(folder, place)
    model = AutoModelForMaskedLM.from_pretrained(folder)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(2)
    model.save_pretrained(place)
    return place


def test_another_models_files_are_refused_before_training(folder, data, other_model, tmp_path):
    kept, said = tmp_path / "kept", tmp_path / "said"
    task = FileTask()
    (scores,) = finetuned(folder, task, data, request(), save_models=kept, save_predictions=said)
    same = {"finished": scores, "save_models": kept, "save_predictions": said}
    assert not list(finetuned(folder, task, data, request(), **same))
    asked = len(task.asked)
    for option, place in (("save_models", kept), ("save_predictions", said)):
        flag = f"--{option.replace('_', '-')}"
        with pytest.raises(ModelError, match=f"another model.*{folder}.*{flag}"):
            list(finetuned(other_model, task, data, request(), **{option: place}))
    assert len(task.asked) == asked, "nothing was trained"


def test_other_settings_have_other_folders(folder, data, tmp_path):
    kept = tmp_path / "kept"
    for epochs in (1, 2):
        asked = request(epochs=epochs)
        list(finetuned(folder, FileTask(), data, asked, save_models=kept))
    names = sorted(place.name for place in kept.iterdir())
    assert [re.sub(r".*(testbed).*(epochs=\d).*", r"\1 \2", name) for name in names] == [
        "testbed epochs=1",
        "testbed epochs=2",
    ]


@pytest.mark.parametrize("scenario", ["supervised", "translate-train"])
def test_trainings_of_several_languages_have_folders_of_their_own(folder, data, tmp_path, scenario):
    places = {"save_models": tmp_path / "kept", "save_predictions": tmp_path / "said"}
    runs = list(finetuned(folder, FileTask(), data, request(scenario), **places))
    scores = [score for of_run in runs for score in of_run]
    assert len(runs) == 3
    assert not list(
        finetuned(folder, FileTask(), data, request(scenario), finished=scores, **places)
    )


def test_a_protocol_whose_numbers_have_changed_is_another(folder, data, tmp_path):
    said = tmp_path / "said"
    list(finetuned(folder, FileTask(), data, request(), save_predictions=said))
    (record,) = said.rglob(RECORD)
    content = json.loads(record.read_text())
    content["settings"]["max_length"] = 12
    record.write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"other settings \(max_length\)"):
        list(finetuned(folder, FileTask(), data, request(), save_predictions=said))


def test_other_training_data_are_refused_and_other_test_data_predicted_again(
    folder, data, tmp_path
):
    said = tmp_path / "said"
    (scores,) = finetuned(folder, FileTask(), data, request(), save_predictions=said)
    same = {"finished": scores, "save_predictions": said}
    (data / "bb.train").write_text("not of this training")
    assert not list(finetuned(folder, FileTask(), data, request(), **same))
    (data / "bb.test").write_text("corrected")
    (again,) = finetuned(folder, FileTask(), data, request(), **same)
    assert {score.data for score in again} != {score.data for score in scores}
    same = {"finished": again, "save_predictions": said}
    assert not list(finetuned(folder, FileTask(), data, request(), **same))
    (data / "aa.train").write_text("corrected")
    with pytest.raises(ModelError, match="trained on other data"):
        list(finetuned(folder, FileTask(), data, request(), **same))


def test_dev_data_count_where_they_select(folder, data, tmp_path):
    kept = tmp_path / "kept"
    chosen = request(selection="source-dev")
    (scores,) = finetuned(folder, FileTask(), data, chosen, save_models=kept)
    (data / "aa.dev").write_text("corrected")
    with pytest.raises(ModelError, match="trained on other data"):
        list(finetuned(folder, FileTask(), data, chosen, finished=scores, save_models=kept))


def test_a_folder_that_does_not_say_what_made_it_is_refused(folder, data, tmp_path):
    kept = tmp_path / "kept"
    list(finetuned(folder, FileTask(), data, request(), save_models=kept))
    (record,) = kept.rglob(RECORD)
    record.unlink()
    with pytest.raises(ModelError, match=f"does not say what it was made from.*{RECORD}"):
        list(finetuned(folder, FileTask(), data, request(), save_models=kept))
