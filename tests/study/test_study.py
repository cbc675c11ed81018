"""Two recipes, two seeds, two tasks: from text to the table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from isoglot.errors import CorpusError, RecipeError
from isoglot.finetune.asked import Finetuning
from isoglot.finetune.scenarios import ScenarioConfig
from isoglot.recipe import load_recipe
from isoglot.results import Results
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
    assert {score["selection"] for score in results["scores"]} == {"last"}
    assert {average["task"] for average in results["averages"]} == set(asked.tasks)
    models = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("model.safetensors")}
    assert len(models) == 4
    assert run(asked, corpus, tmp_path) == rows
    assert models == {file: file.stat().st_mtime_ns for file in models}
    _add_scores_of_others(tmp_path / "tlm-seed0/results.json")
    assert run(asked, corpus, tmp_path) == rows


def _add_scores_of_others(file: Path) -> None:
    """Scores of another protocol, another seed, another task and another language."""
    results = Results.read(file)
    one = replace(results.scores[0], value=1.0)
    others = (
        replace(one, scenario="zero-shot from en, ppa"),
        replace(one, seed=7),
        replace(one, task="xnli"),
        replace(one, language="sw"),
    )
    replace(results, scores=(*results.scores, *others)).write(file)


def test_what_cannot_be_scored_is_said_before_anything_is_trained(asked, corpus, tmp_path):
    with pytest.raises(CorpusError, match="no files of xnli"):
        run(replace(asked, tasks=("xnli",), data=tmp_path), corpus, tmp_path / "out")
    assert not (tmp_path / "out").exists()


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
