"""A study of two recipes and two seeds, from text to the table; controls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from isoglot.errors import CorpusError, RecipeError
from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
from isoglot.recipe import load_recipe
from isoglot.results import Results
from isoglot.study.run import Study, mlm_control, run_study, with_controls

SMALL = [
    "model.hidden_size=32",
    "model.num_heads=2",
    "stages.0.steps=2",
    "batch.rows=4",
    "batch.micro_rows=4",
]


@pytest.fixture
def study() -> Study:
    recipe = load_recipe("demo/mlm-tlm", [*SMALL, "name=tlm"])
    return Study(
        recipes=tuple(with_controls([recipe])),
        seeds=(0, 1),
        tasks=("testbed-sentiment",),
        data=Path(),
        finetuning=FinetuneRequest(
            scenario=ScenarioConfig(targets=("en", "es")),
            protocol="testbed",
            changes={"epochs": 1, "max_train_examples": 16, "selection": "last"},
        ),
    )


def run(study: Study, corpus, place: Path):
    return run_study(study, place, lambda _: corpus.folder, Console(quiet=True))


def test_a_study_end_to_end_and_what_is_finished_is_not_run_again(study, corpus, tmp_path):
    rows = run(study, corpus, tmp_path)
    assert [row.name for row in rows] == ["tlm-control", "tlm"]
    assert all(row.seeds == 2 and set(row.tasks) == set(study.tasks) for row in rows)
    assert rows[1].difference is not None
    written = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in written["rows"]] == ["tlm-control", "tlm"]
    assert (tmp_path / "study.md").read_text(encoding="utf-8").count("\n| tlm") == 2
    results = json.loads((tmp_path / "tlm-seed1/results.json").read_text(encoding="utf-8"))
    assert {score["seed"] for score in results["scores"]} == {1}
    assert {score["selection"] for score in results["scores"]} == {"last"}
    assert {average["task"] for average in results["averages"]} == set(study.tasks)
    models = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("model.safetensors")}
    assert len(models) == 4
    assert run(study, corpus, tmp_path) == rows
    assert models == {file: file.stat().st_mtime_ns for file in models}
    _add_scores_of_others(tmp_path / "tlm-seed0/results.json")
    assert run(study, corpus, tmp_path) == rows


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


def test_what_cannot_be_scored_is_said_before_anything_is_trained(study, corpus, tmp_path):
    with pytest.raises(CorpusError, match="no files of xnli"):
        run(replace(study, tasks=("xnli",), data=tmp_path), corpus, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_recipe_is_refused(study, corpus, tmp_path):
    folder = tmp_path / "tlm-control-seed0"
    folder.mkdir()
    (folder / "recipe.yaml").write_text("name: other\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="other settings"):
        run(study, corpus, tmp_path)


def test_two_rows_of_one_name_are_refused():
    recipe = load_recipe("demo/mlm")
    with pytest.raises(RecipeError, match="have the name 'demo/mlm'"):
        Study(recipes=(recipe, recipe), seeds=(0,), tasks=("xnli",), data=Path())


def test_the_control_is_the_same_text_and_tokens_under_mlm():
    recipe = load_recipe("demo/mlm-tlm")
    control = mlm_control(recipe)
    for before, after in zip(recipe.stages, control.stages, strict=True):
        assert before.steps == after.steps
        assert before.streams.keys() == after.streams.keys()
        assert {stream.objectives for stream in after.streams.values()} == {("mlm",)}
        assert {s.share for s in before.streams.values()} == {
            s.share for s in after.streams.values()
        }
    assert (control.batch, control.optimizer, control.model) == (
        recipe.batch,
        recipe.optimizer,
        recipe.model,
    )
    assert set(control.objectives) == {"mlm"}


def test_recipes_on_the_same_data_share_a_control_and_it_comes_first():
    one = load_recipe("demo/mlm-tlm")
    other = load_recipe("demo/mlm-tlm", ["name=other", "objectives.tlm.masking.rate=0.3"])
    assert [r.name for r in with_controls([one, other])] == [
        "demo/mlm-tlm-control",
        "demo/mlm-tlm",
        "other",
    ]


def test_a_recipe_that_is_its_own_control_gets_none():
    recipe = load_recipe("demo/checkpoint", ["objectives={mlm: {masking: {rate: 0.5}}}"])
    assert with_controls([recipe]) == [recipe]
