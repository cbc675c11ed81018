"""Early stopping: the rule against a slow one, and runs that stop, resume and export their best."""

import io
import json
import math
import shutil
from dataclasses import replace
from typing import Literal

import pytest
from accelerate import Accelerator
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from safetensors.torch import load_file

from isoglot.errors import CheckpointError, RecipeError
from isoglot.models.config import ExportConfig
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.config import LoggingConfig, objectives_of
from isoglot.pretraining.monitoring.early_stopping import (
    EarlyStoppingConfig,
    HeldoutProgress,
    HeldoutWatch,
)
from isoglot.pretraining.monitoring.heldout_scores import Metric, heldout_value
from isoglot.pretraining.run import pretrain
from isoglot.recipe import load_recipe
from tests.pretraining import driver

FINGERPRINTS = {
    "tiny": "a815e375c582efea",
    "ppa-mean": "9b59164c2125c883",
    "ernie-m": "ed0e7181a0369e59",
    "metaxlm-tiny": "33760c2b3bed2287",
}
"""Of recipes without early stopping: a change here gives resumed runs a note."""


def slow_rule(values: list[float], metric: Metric, min_delta: float) -> tuple[int, int]:
    """(index of the best validation, validations since the last improvement), from the start."""
    signed = [value if metric == "retrieval" else -value for value in values]
    best = max(range(len(values)), key=lambda i: (signed[i], -i))
    improved, level = 0, signed[0]
    for number, value in enumerate(signed):
        if value - level > min_delta:
            improved, level = number, value
    return best, len(values) - 1 - improved


@given(
    st.lists(st.sampled_from([k / 8 for k in range(9)]), min_size=1, max_size=30),
    st.sampled_from(["retrieval", "loss"]),
    st.sampled_from([0.0, 0.125, 0.25]),
)
def test_the_progress_is_that_of_the_slow_rule(values, metric, min_delta):
    progress = HeldoutProgress(metric=metric, best=values[0], best_step=0, reference=values[0])
    for step, value in enumerate(values[1:], start=1):
        progress = progress.after(value, step, min_delta=min_delta)
    best, stale = slow_rule(values, metric, min_delta)
    assert (progress.best_step, progress.best, progress.stale) == (best, values[best], stale)


def test_small_improvements_add_up_and_nan_is_none():
    progress = HeldoutProgress(metric="retrieval", best=0.5, best_step=1, reference=0.5)
    progress = progress.after(0.506, 2, min_delta=0.01)
    assert (progress.best_step, progress.stale) == (2, 1)
    progress = progress.after(0.512, 3, min_delta=0.01)
    assert (progress.best_step, progress.stale, progress.reference) == (3, 0, 0.512)
    progress = progress.after(math.nan, 4, min_delta=0.0)
    assert (progress.best_step, progress.stale) == (3, 1)


def test_the_number_of_a_validation():
    scores = {
        "valid/mlm/de/perplexity": 100.0,
        "valid/mlm/mean/perplexity": math.e**2,
        "valid/moco/mean/loss": 4.0,
        "valid/moco/mean/accuracy": 0.5,
        "valid/one/mean/retrieval": 0.2,
        "valid/two/mean/retrieval": 0.4,
        "valid/one/pairs": 7.0,
    }
    assert heldout_value(scores, "loss") == pytest.approx(3.0)
    assert heldout_value(scores, "retrieval") == pytest.approx(0.3)
    assert heldout_value({"valid/mlm/mean/perplexity": 2.0}, "retrieval") is None


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_recipes_without_it_keep_their_fingerprint(name):
    recipe = load_recipe(name)
    assert recipe.fingerprint() == FINGERPRINTS[name]
    on = replace(recipe, early_stopping=EarlyStoppingConfig())
    seen = [on.fingerprint()]
    seen.append(replace(on, early_stopping=EarlyStoppingConfig(patience=6)).fingerprint())
    # with it, validations decide the last step
    often = replace(on.logging, validate_every_steps=7)
    seen.append(replace(on, logging=often).fingerprint())
    assert len({*seen, recipe.fingerprint()}) == 4


def test_the_order_of_examples_is_in_the_fingerprint():
    """A run that goes on in another order is told so."""
    recipe = load_recipe("tiny")
    seen = {recipe.fingerprint()}
    orders: list[tuple[Literal["examples", "blocks"], int]]
    orders = [("examples", 8), ("blocks", 8), ("blocks", 4)]
    for shuffle, number in orders:
        streams = {
            name: replace(stream, shuffle=shuffle, shuffle_blocks=number)
            for name, stream in recipe.stages[0].streams.items()
        }
        stages = (replace(recipe.stages[0], streams=streams), *recipe.stages[1:])
        seen.add(replace(recipe, stages=stages).fingerprint())
    assert len(seen) == 3


def test_what_cannot_be_watched_is_refused(corpus, tmp_path):
    never = LoggingConfig(validate_every_steps=0)
    with pytest.raises(RecipeError, match=r"nothing to watch with logging\.validate"):
        driver.config(logging=never, early_stopping=EarlyStoppingConfig())
    stage = driver.config().stages[:1]
    logging = LoggingConfig(validate_every_steps=2, trackers=())
    retrieval = EarlyStoppingConfig(metric="retrieval")
    config = driver.config(stages=stage, logging=logging, early_stopping=retrieval)
    with pytest.raises(RecipeError, match="needs held-out pairs, and the corpus has none"):
        pretrain(config, corpus, tmp_path / "run")
    assert not (tmp_path / "run/checkpoints").exists()


def test_contrast_of_translations_is_judged_by_retrieval():
    accelerator = Accelerator(cpu=True)
    contrast, plain = driver.stopping(), driver.config()
    watch = HeldoutWatch(contrast, objectives_of(contrast), accelerator)
    found: list[Metric] = []
    held_out: list[list[Metric]] = [["loss", "retrieval"], ["loss"]]  # with pairs, without
    for available in held_out:
        watch.check(available)
        found.append(watch.metric)
    assert found == ["retrieval", "loss"]
    with pytest.raises(RecipeError, match="needs held-out examples"):
        watch.check([])
    assert HeldoutWatch(plain, objectives_of(plain), accelerator).metric == "loss"


@pytest.fixture(scope="module")
def stopped(corpus, tmp_path_factory):
    """A run that has stopped early, and what it said."""
    folder, shown = tmp_path_factory.mktemp("stopped") / "run", io.StringIO()
    console = Console(file=shown, width=500)
    outcome = pretrain(driver.stopping(), corpus, folder, console=console, recipe_text="{}\n")
    return folder, outcome, shown.getvalue()


def validations(folder):
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [one for one in records if "seconds" not in one]


def test_a_run_stops_at_the_step_that_the_rule_says(stopped):
    folder, outcome, said = stopped
    last = [one for one in validations(folder) if one["stage"] == 1]
    values = [one["valid/parallel/mean/retrieval"] for one in last]
    best, stale = slow_rule(values, "retrieval", 0.0)
    assert stale == 3
    assert all(slow_rule(values[:n], "retrieval", 0.0)[1] < 3 for n in range(1, len(values)))
    assert outcome.finished
    assert outcome.stopped_early
    assert outcome.total_steps == last[-1]["step"] < 63
    assert outcome.exported_step == last[best]["step"] < outcome.total_steps
    assert f"stopped early after step {outcome.total_steps} of 63" in said
    assert "The schedule was not at its end" in said
    assert "no improvement in 2 validations\n" in said
    record = last[-1]
    assert (record["heldout/best"], record["heldout/stale"]) == (values[best], 3)
    # earlier stages are not watched
    assert not any("heldout/best" in one for one in validations(folder) if one["stage"] == 0)


def test_the_best_checkpoint_is_kept_and_exported(stopped):
    folder, outcome, _ = stopped
    kept = sorted(path.name for path in (folder / "checkpoints").iterdir())
    steps = [outcome.exported_step, outcome.total_steps]
    assert kept == [f"step-{step:08d}" for step in steps]  # keep: 1, and the best
    model = load_file(folder / "model/model.safetensors")
    weights = [load_file(folder / "checkpoints" / name / "weights.safetensors") for name in kept]
    name = "roberta.encoder.layer.0.attention.self.query.weight"
    best, last = (one[f"encoder.model.{name}"] for one in weights)
    assert model[name].equal(best)
    assert not model[name].equal(last)
    sentences = load_file(folder / "sentence-transformers/model.safetensors")
    assert sentences[name.removeprefix("roberta.")].equal(best)
    card = (folder / "model/README.md").read_text()
    assert f"after {outcome.exported_step} steps" in card


def test_a_stopped_run_that_is_resumed_stays_stopped(stopped, corpus, tmp_path):
    folder, outcome, _ = stopped
    run = tmp_path / "run"
    shutil.copytree(folder, run)
    shutil.rmtree(run / "model")
    again = pretrain(driver.stopping(), corpus, run, resume=True, console=Console(quiet=True))
    assert again == replace(outcome, model=run / "model")
    file = "model/model.safetensors"
    assert (run / file).read_bytes() == (folder / file).read_bytes()
    # more patience: it goes on
    more = replace(driver.stopping(), early_stopping=EarlyStoppingConfig(patience=4))
    longer = pretrain(more, corpus, run, resume=True, console=Console(quiet=True))
    assert longer.total_steps > outcome.total_steps


def test_a_lost_best_checkpoint_is_an_error(stopped, corpus, tmp_path):
    folder, outcome, _ = stopped
    run = tmp_path / "run"
    shutil.copytree(folder, run)
    shutil.rmtree(run / f"checkpoints/step-{outcome.exported_step:08d}")
    with pytest.raises(CheckpointError, match=r"isoglot export .* --checkpoint last"):
        pretrain(driver.stopping(), corpus, run, resume=True, console=Console(quiet=True))


def test_the_best_step_without_early_stopping(corpus, tmp_path):
    """All steps are taken; the mean loss decides, as nothing is contrasted."""
    stage = driver.config().stages[:1]
    config = driver.config(
        stages=(replace(stage[0], steps=6),),
        checkpoint=CheckpointConfig(every_steps=100, keep=1),
        logging=LoggingConfig(validate_every_steps=2, validate_examples=5, trackers=()),
        export=ExportConfig(checkpoint="best"),
    )
    outcome = pretrain(config, corpus, tmp_path / "run", console=Console(quiet=True))
    assert (outcome.total_steps, outcome.stopped_early) == (6, False)
    found = validations(tmp_path / "run")
    losses = [math.log(one["valid/mlm/mean/perplexity"]) for one in found]
    best = min(range(3), key=lambda n: losses[n])
    assert outcome.exported_step == found[best]["step"]
    assert found[-1]["heldout/best"] == pytest.approx(losses[best])
