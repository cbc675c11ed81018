"""A study of two recipes and two seeds, from text to the table; controls."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from safetensors.torch import load_file, save_file

from isoglot.errors import CorpusError, ModelError, RecipeError
from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
from isoglot.model_results import fingerprint
from isoglot.pretraining.config import data_fingerprint
from isoglot.recipe import dump, load_recipe
from isoglot.results import Results
from isoglot.study.controls import with_controls
from isoglot.study.jobs import Job, check_job
from isoglot.study.run import Study, run_study
from tests.models.tiny import saved_model

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
    out = StringIO()
    console = Console(file=out, width=200)
    table = run_study(study, tmp_path, lambda _: corpus.folder, console)
    lines = [line for line in out.getvalue().splitlines() if line.startswith("run ")]
    assert lines[0] == "run 1 of 4: tlm-control-seed0"
    assert re.fullmatch(r"run 4 of 4: tlm-seed1, about \d+ s left of the study", lines[3])
    rows = table.rows
    assert [row.name for row in rows] == ["tlm-control", "tlm"]
    assert all(row.seeds == 2 and set(row.tasks) == set(study.tasks) for row in rows)
    assert [one.name for one in table.comparisons] == ["tlm"]
    written = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in written["rows"]] == ["tlm-control", "tlm"]
    assert (tmp_path / "study.md").read_text(encoding="utf-8").count("\n| tlm") == 3
    results = json.loads((tmp_path / "tlm-seed1/results.json").read_text(encoding="utf-8"))
    assert {score["seed"] for score in results["scores"]} == {1}
    assert {score["selection"] for score in results["scores"]} == {"last"}
    assert {average["task"] for average in results["averages"]} == set(study.tasks)
    models = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("model.safetensors")}
    assert len(models) == 4
    assert run(study, corpus, tmp_path) == table
    assert models == {file: file.stat().st_mtime_ns for file in models}
    _add_scores_of_others(tmp_path / "tlm-seed0/results.json")
    assert run(study, corpus, tmp_path) == table


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
    (folder / "checkpoints/step-00000002").mkdir(parents=True)
    with pytest.raises(RecipeError, match="other settings"):
        run(study, corpus, tmp_path)


def test_a_finished_run_of_another_corpus_is_refused(study, corpus, knowing, tmp_path):
    folder = tmp_path / "tlm-control-seed0"
    (folder / "model").mkdir(parents=True)
    (folder / "model/config.json").write_text("{}", encoding="utf-8")
    recipe = study.recipes[0]
    (folder / "recipe.yaml").write_text(dump(recipe), encoding="utf-8")
    with pytest.raises(RecipeError, match="does not say which corpus"):
        run(study, corpus, tmp_path)
    (folder / "corpus.json").write_text("{", encoding="utf-8")
    with pytest.raises(RecipeError, match="is damaged"):
        run(study, corpus, tmp_path)
    other = {"fingerprint": f"not {corpus.fingerprint}", "folder": str(knowing.folder)}
    other["init_from"] = ""
    (folder / "corpus.json").write_text(json.dumps(other), encoding="utf-8")
    with pytest.raises(RecipeError, match=r"trained on another corpus .* Choose another folder"):
        run(study, corpus, tmp_path)


def test_a_run_that_began_with_other_weights_is_refused(corpus, tmp_path):
    start = Path(saved_model(tmp_path, "xlm-r"))
    recipe = load_recipe("demo/mlm-tlm", [*SMALL[2:], f"model={{init_from: {start}}}"])
    job = Job(
        recipe=recipe,
        corpus=corpus.folder,
        folder=tmp_path / "run",
        tasks=(),
        data=(),
        request=FinetuneRequest(),
    )
    (job.folder / "checkpoints/step-00000002").mkdir(parents=True)
    content = {
        "fingerprint": data_fingerprint(recipe, corpus),
        "folder": str(corpus.folder),
        "init_from": fingerprint(start),
    }
    (job.folder / "corpus.json").write_text(json.dumps(content), encoding="utf-8")
    check_job(job)
    weights = load_file(start / "model.safetensors")
    name = next(iter(weights))
    save_file({**weights, name: weights[name] + 1}, start / "model.safetensors", {"format": "pt"})
    with pytest.raises(RecipeError, match=r"began with other weights .* Choose another folder"):
        check_job(job)
    # an error in the settings ended it before its first checkpoint: the mended command goes on
    (job.folder / "checkpoints/step-00000002").rmdir()
    (job.folder / "recipe.yaml").write_text("name: other\n", encoding="utf-8")
    check_job(job)


@pytest.mark.slow
def test_runs_side_by_side_train_the_same_models(study, corpus, tmp_path):
    run(study, corpus, tmp_path / "alone")
    out = StringIO()
    console = Console(file=out, width=200)
    # the processes generate the tasks in full size: their scores are of other examples
    together = run_study(
        study, tmp_path / "together", lambda _: corpus.folder, console, num_parallel=2
    )
    assert [row.name for row in together.rows] == ["tlm-control", "tlm"]
    models = sorted((tmp_path / "alone").glob("*/model/model.safetensors"))
    assert len(models) == 4
    for file in models:
        other = tmp_path / "together" / file.relative_to(tmp_path / "alone")
        assert file.read_bytes() == other.read_bytes()
    assert out.getvalue().count("is finished") == 4
    assert (tmp_path / "together/tlm-seed0.log").is_file()


def test_a_baseline_that_is_no_row_is_refused(study):
    with pytest.raises(RecipeError, match="did you mean 'tlm'"):
        replace(study, baseline="tml")


def test_two_rows_of_one_name_are_refused():
    recipe = load_recipe("demo/mlm")
    with pytest.raises(RecipeError, match="have the name 'demo/mlm'"):
        Study(recipes=(recipe, recipe), seeds=(0,), tasks=("xnli",), data=Path())


def test_a_missing_model_is_said_before_any_work_unless_its_runs_are_finished(study, tmp_path):
    recipe = load_recipe("tiny", ["name=tlm", "model.init_from=runs/none"])
    short = replace(study, recipes=(recipe,))
    asked: list[str] = []

    def corpus_of(recipe) -> Path:
        asked.append(recipe.name)
        raise CorpusError("this is the corpus's turn")

    with pytest.raises(ModelError, match="There is no folder"):
        run_study(short, tmp_path, corpus_of, Console(quiet=True))
    assert asked == []
    for seed in short.seeds:
        (tmp_path / f"tlm-seed{seed}/model").mkdir(parents=True)
        (tmp_path / f"tlm-seed{seed}/model/config.json").write_text("{}")
    with pytest.raises(CorpusError, match="this is the corpus's turn"):
        run_study(short, tmp_path, corpus_of, Console(quiet=True))
