"""Trackers that are not there and launchers that would be ignored are refused before any work."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from isoglot.errors import IsoglotError, RecipeError
from isoglot.pretraining import environment
from isoglot.pretraining.config import LoggingConfig
from isoglot.pretraining.environment import check_environment, hyperparameters
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver, launching


@pytest.mark.parametrize(
    ("tracker", "package"), [("wandb", "wandb"), ("comet_ml", "comet-ml"), ("mlflow", "mlflow")]
)
def test_a_tracker_that_is_not_installed_is_refused_with_its_package(
    tracker, package, corpus, tmp_path, monkeypatch
):
    monkeypatch.setattr(environment, "get_available_trackers", list)
    config = driver.config(logging=LoggingConfig(trackers=(tracker,)))
    with pytest.raises(RecipeError, match=rf"{tracker} is not installed.*pip install {package}\)"):
        pretrain(config, corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_installed_tracker_and_no_tracker_are_fine():
    check_environment(("tensorboard",))
    check_environment(())


@pytest.mark.parametrize(
    ("variable", "value", "what"),
    [
        ("ACCELERATE_USE_FSDP", "true", "FSDP"),
        ("ACCELERATE_USE_DEEPSPEED", "1", "DeepSpeed"),
        ("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4", "scale the gradient"),
    ],
)
def test_what_accelerate_is_asked_for_is_not_ignored(variable, value, what, monkeypatch):
    monkeypatch.setenv(variable, value)
    with pytest.raises(IsoglotError, match=f"{variable}={value} .*{what}"):
        check_environment(())


@pytest.mark.parametrize("value", ["false", "0", ""])
def test_what_it_is_not_asked_for_is_no_error(value, monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_FSDP", value)
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "1")
    check_environment(())


@pytest.mark.slow
def test_accelerate_launch_starts_what_torchrun_starts(corpus, tmp_path):
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
    launch += ["--num_processes=2", "--num_machines=1", "--mixed_precision=no"]
    launch += ["--dynamo_backend=no", "--main_process_port=0", "-m"]
    run, other = tmp_path / "launched", tmp_path / "torchrun"
    *_, program = launching.command(corpus.folder, run)[:3]
    launching.finish([*launch, program, str(corpus.folder), str(run)])
    launching.Forked(corpus.folder, other, processes=2).finish()
    weights = [one / "model" / "model.safetensors" for one in (run, other)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    found = launching.losses(run / "metrics.jsonl")
    assert found == launching.losses(other / "metrics.jsonl") != {}


def test_trackers_get_every_setting_as_a_plain_value():
    found = hyperparameters(driver.config())
    assert found["optimizer.learning_rate"] == 3e-3
    assert found["stages.1.optimizer.name"] == "lamb"
    assert found["stages.1.streams.parallel.objectives"] == "('tlm',)"
    assert found["model.init_from"] == "null"
    assert found["batch.rows"] == 4
    assert found["stages.0.streams.text.languages"] == "()"
    assert found["optimizer.betas"] == "(0.9, 0.98)"
    assert found["deterministic"] is True
    assert {type(value) for value in found.values()} <= {str, int, float, bool}


def test_a_run_gives_its_settings_to_its_trackers(corpus, tmp_path):
    """TensorBoard keeps them in hparams.yml and as its own hyperparameters."""
    config = driver.config(logging=LoggingConfig(validate_examples=2))
    stages = tuple(replace(stage, steps=1) for stage in config.stages[:1])
    pretrain(replace(config, stages=stages), corpus, tmp_path, console=Console(quiet=True))
    (file,) = tmp_path.rglob("hparams.yml")
    assert "optimizer.learning_rate: 0.003" in file.read_text(encoding="utf-8")
    assert json.loads((tmp_path / "metrics.jsonl").read_text("utf-8").splitlines()[0])["step"] == 1
