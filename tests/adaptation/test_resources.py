from __future__ import annotations

from dataclasses import replace

import pytest

from isoglot.adaptation.choices import choose_mixture
from isoglot.adaptation.plan import make_plan, plan_recipe
from isoglot.adaptation.resources import SampleTrial
from isoglot.adaptation.vocabulary import choose_growth
from isoglot.errors import IsoglotError
from isoglot.pretraining.config import Recipe
from isoglot.pretraining.estimates import estimate
from isoglot.pretraining.estimates.micro_rows import DoesNotFitError
from tests.adaptation.trials import COSTS, tried


def planned(looked) -> Recipe:
    growth = choose_growth(looked.findings, looked.config, looked.folder)
    mixture = choose_mixture(looked.findings, looked.config)
    recipe, _ = plan_recipe(looked.findings, looked.config, looked.folder, growth, mixture)
    return recipe


class Estimate:
    def __init__(self, config: Recipe) -> None:
        self.config, self.costs, self.reason = config, COSTS, "fits"
        self.micro_rows = config.batch.rows


def test_a_step_that_does_not_fit_becomes_smaller(looked, monkeypatch):
    """On a corpus that has the sources and languages of the plan."""
    tried = []

    def estimate_run(recipe: Recipe, corpus, console: object, **_: object) -> Estimate:
        assert console is None
        tried.append(recipe.batch.rows)
        kinds = {name: list(one.languages) for name, one in corpus.manifest.sources.items()}
        assert kinds == {"pairs": ["en-sw"], "text": ["en", "sw"]}
        if recipe.batch.rows > 6:
            raise DoesNotFitError("too large", largest=6 if recipe.batch.rows == 16 else 0)
        return Estimate(recipe)

    monkeypatch.setattr(estimate, "estimate_run", estimate_run)
    recipe = planned(looked)
    trial = SampleTrial(looked.findings, looked.folder)(recipe)
    assert tried == [16, 6]
    assert (trial.rows, trial.micro_rows) == (6, 6)
    assert trial.reason == "16 do not fit the memory; fits"
    assert trial.prepare_seconds > 0
    assert trial.tokens_per_second == 2000
    large = replace(recipe, batch=replace(recipe.batch, rows=64))
    with pytest.raises(DoesNotFitError, match="too large"):
        SampleTrial(looked.findings, looked.folder)(large)


@pytest.mark.parametrize(
    ("hours", "limits"), [(None, (120, 10)), (0.1, (18, 10)), (0.05, (9, 5.4)), (24, (120, 10))]
)
def test_a_trial_takes_a_small_share_of_the_hours(hours, limits, looked, monkeypatch):
    given = []

    def estimate_run(recipe: Recipe, *_: object, **seconds: float) -> Estimate:
        given.append((seconds["search_seconds"], seconds["trial_seconds"]))
        return Estimate(replace(recipe, batch=replace(recipe.batch, rows=4)))

    monkeypatch.setattr(estimate, "estimate_run", estimate_run)
    SampleTrial(looked.findings, looked.folder, hours)(planned(looked))
    assert given == [pytest.approx(limits)]


def test_a_disk_that_is_too_small(looked):
    machine = replace(looked.findings.machine, disk_free_bytes=10**6)
    with pytest.raises(IsoglotError, match=r"need 0.0 GB, and 0.0 GB are free there. Free disk"):
        make_plan(replace(looked.findings, machine=machine), looked.config, looked.folder, tried)
