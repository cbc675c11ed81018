"""Scores of models along training and by a setting, as points; the verb that draws them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from isoglot.corpus import Corpus
from isoglot.errors import IsoglotError, RecipeError
from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
from isoglot.pretraining.run import pretrain
from isoglot.recipe import dump, load_recipe
from isoglot.report.inputs import parse_named_folder
from isoglot.results import Results
from isoglot.study.transfer import heldout_curves, models_to_plot, recipe_value, transfer_curves

SMALL = [
    "model.hidden_size=32", "model.num_heads=2", "stages.0.steps=4", "batch.rows=4",
    "batch.micro_rows=4", "export.every_steps=2", "logging.validate_every_steps=2",
]  # fmt: skip
ALPHA = "stages.0.streams.text.alpha"


@pytest.fixture(scope="module")
def runs(corpus: Corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for alpha in (0.3, 0.7):
        recipe = load_recipe("demo/checkpoint", [*SMALL, f"{ALPHA}={alpha}"])
        pretrain(
            recipe,
            corpus,
            folder / f"alpha-{alpha}",
            recipe_text=dump(recipe),
            console=Console(quiet=True),
        )
    return folder


def inputs(runs, name="xlm"):
    return [
        parse_named_folder(f"{name}={runs / 'alpha-0.3'}"),
        parse_named_folder(f"{name}={runs / 'alpha-0.7'}"),
    ]


def test_models_along_training_and_final_ones(runs):
    along = models_to_plot(inputs(runs)[:1], "steps")
    assert [(moment.name, moment.x) for moment in along] == [("xlm", 0), ("xlm", 2), ("xlm", 4)]
    final = models_to_plot(inputs(runs), ALPHA)
    assert [moment.x for moment in final] == [0.3, 0.7]
    assert [moment.model.name for moment in final] == ["model", "model"]


def test_heldout_losses_are_those_of_the_metrics(runs):
    scored = heldout_curves(inputs(runs)[:1], "steps", source="aa")
    lines = (runs / "alpha-0.3/metrics.jsonl").read_text().splitlines()
    noted = [found for line in lines if "valid/mlm/aa/perplexity" in (found := json.loads(line))]
    assert [point.x for point in scored.points] == [2, 4]
    for point, said in zip(scored.points, noted, strict=True):
        own = {code: math.log(said[f"valid/mlm/{code}/perplexity"]) for code in ("aa", "bb", "cc")}
        assert point.source == pytest.approx(own["aa"])
        assert point.target == pytest.approx((own["bb"] + own["cc"]) / 2)
        assert point.gap == pytest.approx(point.target - own["aa"])
    by_setting = heldout_curves(inputs(runs), ALPHA, source="aa").points
    assert [point.x for point in by_setting] == [0.3, 0.7]
    assert by_setting[0].source == scored.points[-1].source


def test_tasks_are_fine_tuned_scored_and_kept(runs, tmp_path):
    found = models_to_plot(inputs(runs), ALPHA)
    request = FinetuneRequest(
        scenario=ScenarioConfig(targets=("en", "es")),
        protocol="testbed",
        changes={"epochs": 1, "max_train_examples": 16, "selection": "last"},
        seeds=(0,),
    )
    (scored,) = transfer_curves(found, ["testbed-sentiment"], tmp_path, request, source="en")
    assert scored.title == "testbed-sentiment"
    for moment, point in zip(found, scored.points, strict=True):
        kept = Results.read(moment.model / "results.json").scores
        values = {score.language: score.value for score in kept if score.metric == scored.unit}
        assert (point.source, point.target) == (values["en"], values["es"])
        assert point.gap == pytest.approx(values["en"] - values["es"])
    written = [(moment.model / "results.json").stat().st_mtime_ns for moment in found]
    again = transfer_curves(found, ["testbed-sentiment"], tmp_path, request, source="en")
    assert again == [scored]
    assert [(m.model / "results.json").stat().st_mtime_ns for m in found] == written
    alone = replace(request, scenario=ScenarioConfig(targets=("es",)))
    with pytest.raises(IsoglotError, match="needs a language other than 'es'"):
        transfer_curves(found, ["testbed-nli"], tmp_path, alone, source="es")


def test_faults_are_said(runs, tmp_path):
    assert recipe_value(runs / "alpha-0.7", ALPHA) == 0.7
    with pytest.raises(RecipeError, match="has no setting"):
        recipe_value(runs / "alpha-0.7", "stages.3.steps")
    with pytest.raises(RecipeError, match="not a number"):
        recipe_value(runs / "alpha-0.7", "loss.weighting")
    with pytest.raises(IsoglotError, match=r"export\.every_steps"):
        models_to_plot([parse_named_folder(str(tmp_path))], "steps")
    with pytest.raises(IsoglotError, match="a transfer gap needs 'en'"):
        heldout_curves(inputs(runs), "steps", source="en")
    with pytest.raises(
        IsoglotError, match=r"has no held-out tlm loss\. A run records .*--objective"
    ):
        heldout_curves(inputs(runs), "steps", source="aa", objective="tlm")
