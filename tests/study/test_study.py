"""Two recipes, two seeds, two tasks: from text to the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from isoglot.errors import RecipeError
from isoglot.finetune.asked import Finetuning
from isoglot.finetune.scenarios import ScenarioConfig
from isoglot.recipe import load_recipe
from isoglot.study import Study, study, with_controls

SMALL = [
    "model.hidden=32",
    "model.heads=2",
    "stages.0.steps=3",
    "batch.rows=4",
    "batch.micro_rows=4",
]


@pytest.fixture
def asked() -> Study:
    recipe = load_recipe("demo/mlm-tlm", [*SMALL, "name=tlm"])
    return Study(
        recipes=tuple(with_controls([recipe])),
        seeds=(0, 1),
        tasks=("testbed-sentiment", "testbed-ner"),
        data=Path(),
        finetuning=Finetuning(
            scenario=ScenarioConfig(targets=("en", "es")),
            protocol="testbed",
            changes={"epochs": 1, "max_train": 32, "selection": "last"},
        ),
    )


def run(asked: Study, corpus, place: Path):
    return study(asked, place, lambda _: corpus.folder, Console(quiet=True))


def test_a_study_end_to_end_and_what_is_finished_is_not_run_again(asked, corpus, tmp_path):
    rows = run(asked, corpus, tmp_path)
    assert [row.name for row in rows] == ["tlm-control", "tlm"]
    assert all(row.seeds == 2 and set(row.tasks) == set(asked.tasks) for row in rows)
    assert rows[1].against_first is not None
    written = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in written["rows"]] == ["tlm-control", "tlm"]
    assert (tmp_path / "study.md").read_text(encoding="utf-8").count("\n| tlm") == 2
    results = json.loads((tmp_path / "tlm-seed1/results.json").read_text(encoding="utf-8"))
    assert {score["seed"] for score in results["scores"]} == {1}
    assert results["selection"] == "last"
    assert {average["task"] for average in results["averages"]} == set(asked.tasks)
    models = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("model.safetensors")}
    assert len(models) == 4
    assert run(asked, corpus, tmp_path) == rows
    assert models == {file: file.stat().st_mtime_ns for file in models}


def test_a_folder_of_another_recipe_is_refused(asked, corpus, tmp_path):
    folder = tmp_path / "tlm-control-seed0"
    folder.mkdir()
    (folder / "recipe.yaml").write_text("name: other\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="other settings"):
        run(asked, corpus, tmp_path)


def test_two_rows_of_one_name_are_refused():
    recipe = load_recipe("demo/mlm")
    with pytest.raises(RecipeError, match="are called 'demo/mlm'"):
        Study(recipes=(recipe, recipe), seeds=(0,), tasks=("xnli",), data=Path())
