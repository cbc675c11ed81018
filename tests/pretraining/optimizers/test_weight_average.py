"""The moving average of the weights: by hand, exact resume, what is exported and refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from torch import nn

from isoglot.errors import CheckpointError, RecipeError
from isoglot.exporting.export import export_model
from isoglot.pretraining import train_step
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from isoglot.pretraining.estimates.memory_estimate import estimate_memory
from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.pretraining.optimizers.weight_average import (
    AveragingConfig,
    WeightAverage,
    averaged_weights,
)
from isoglot.pretraining.processes.distributed import DistributedConfig
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver
from tests.pretraining.test_resume import assert_same, train

QUIET = Console(quiet=True)
WEIGHT = "roberta.encoder.layer.1.output.dense.weight"
NAME = f"encoder.model.{WEIGHT}"


def averaging(decay: float = 0.5, **changes: Any) -> Any:
    return replace(driver.config(), averaging=AveragingConfig(decay=decay), **changes)


def newest(run: Path) -> dict[str, torch.Tensor]:
    return Checkpoint(max((run / "checkpoints").iterdir())).read()


def test_three_updates_by_hand() -> None:
    module = nn.Linear(2, 1, bias=False).double()
    average = WeightAverage(module, AveragingConfig(decay=0.15))
    values = module.weight[0].tolist()
    expected = list(values)
    for step, decay in enumerate([0.1, 0.15, 0.15]):  # 1/10, then 2/11 and 3/12 are more than 0.15
        module.weight.data += step + 1.0
        values = [value + step + 1.0 for value in values]
        pairs = zip(expected, values, strict=True)
        expected = [decay * old + (1 - decay) * new for old, new in pairs]
        average.update(step)
    assert average.get_buffer("weight")[0].tolist() == pytest.approx(expected, rel=1e-12)
    with averaged_weights(average):
        assert module.weight[0].tolist() == pytest.approx(expected, rel=1e-12)
    assert module.weight[0].tolist() == pytest.approx(values, rel=1e-12)


@pytest.fixture(scope="module")
def whole(corpus: Any, tmp_path_factory: Any) -> Any:
    """A run with an average, and the weights after each step of its last stage."""
    folder, seen = tmp_path_factory.mktemp("whole"), []
    original = train_step.StageContext.update_average

    def update(self: Any, step: int) -> None:
        if self.stage == 1:
            if step == 0:
                average = self.module.average
                seen.append(average.get_buffer(NAME.replace(".", "|")).clone())
            seen.append(self.module.get_parameter(NAME).detach().clone())
        original(self, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_step.StageContext, "update_average", update)
        pretrain(averaging(), corpus, folder, console=QUIET)
    return folder, seen


def test_the_exported_weights_are_the_average_of_the_last_stage(whole: Any) -> None:
    folder, (start, *steps) = whole
    expected = start.double()
    for step, weights in enumerate(steps):
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * weights.double()
    exported = load_file(folder / "model" / "model.safetensors")
    found = exported[WEIGHT]
    assert torch.allclose(found.double(), expected, rtol=0, atol=1e-6)
    assert (found - steps[-1]).abs().max() > 1e-4
    assert (
        "moving average of the last stage's steps, decay 0.5"
        in (folder / "model" / "README.md").read_text()
    )


def test_training_is_that_without_an_average(corpus: Any, whole: Any, tmp_path: Any) -> None:
    pretrain(driver.config(), corpus, tmp_path / "plain", console=QUIET)
    plain, found = newest(tmp_path / "plain"), newest(whole[0])
    assert all(found[name].equal(tensor) for name, tensor in plain.items())
    assert {name.partition(".")[0] for name in found.keys() - plain.keys()} == {"average"}


@pytest.mark.parametrize("stop_at", [3, 13])
def test_weights_and_average_resume_exactly(
    corpus: Any, whole: Any, tmp_path: Any, stop_at: int
) -> None:
    train(averaging(), corpus, tmp_path / "run", resume=False, stop_at=stop_at)
    train(averaging(), corpus, tmp_path / "run", resume=True)
    assert_same(tmp_path / "run", whole[0])


def test_a_run_cannot_begin_or_stop_to_average_when_it_is_resumed(
    corpus: Any, whole: Any, tmp_path: Any
) -> None:
    train(driver.config(), corpus, tmp_path / "plain", resume=False, stop_at=3)
    with pytest.raises(CheckpointError, match="no average of the weights: resume without"):
        train(averaging(), corpus, tmp_path / "plain", resume=True)
    shutil.copytree(whole[0], tmp_path / "average")
    with pytest.raises(CheckpointError, match="it has an average of the weights: resume with"):
        train(driver.config(), corpus, tmp_path / "average", resume=True)


def test_an_exported_checkpoint_is_the_average(whole: Any, tmp_path: Any) -> None:
    folder, _ = whole
    (folder / "recipe.yaml").write_text(RECIPE)
    export_model(folder, tmp_path / "out", console=QUIET)
    one = load_file(tmp_path / "out" / "model.safetensors")
    other = load_file(folder / "model" / "model.safetensors")
    assert all(one[name].equal(other[name]) for name in other)


RECIPE = """
name: averaged
model: {size: tiny, num_layers: 2, hidden_size: 32, num_heads: 2, max_positions: 96}
averaging: {decay: 0.5}
batch: {row_length: 96}
stages: [{steps: 10, streams: {text: {objectives: [mlm]}}}]
"""


def test_validation_scores_the_average(corpus: Any, tmp_path: Any) -> None:
    scores = {}
    for name, config in (("plain", driver.config()), ("average", averaging(0.9))):
        pretrain(config, corpus, tmp_path / name, console=QUIET)
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        scores[name] = [line for line in lines if "valid/" in line]
    assert scores["plain"]
    assert scores["plain"] != scores["average"]


def test_what_does_not_go_with_it_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"averaging needs whole weights.*fsdp splits them"):
        averaging(distributed=DistributedConfig(strategy="fsdp"))
    with pytest.raises(RecipeError, match="averaging needs float32 weights"):
        averaging(memory=MemoryConfig(weights="bf16"))


def test_the_estimate_counts_it(corpus: Any) -> None:
    plain = estimate_memory(driver.config(), corpus, device="cpu")
    found = estimate_memory(averaging(), corpus, device="cpu")
    assert found.momentum_encoders - plain.momentum_encoders == 4 * plain.num_parameters
    assert averaging().fingerprint() != driver.config().fingerprint()
