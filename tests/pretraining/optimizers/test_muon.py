"""Muon and AdamW together: which weight has which, the numbers of both, exact resume."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import nn
from transformers import AutoModelForMaskedLM

from isoglot.errors import RecipeError
from isoglot.models.config import ModelConfig
from isoglot.models.loading import scratch_config
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from isoglot.pretraining.optimizers.muon import layer_matrices
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer
from isoglot.pretraining.processes.distributed import DistributedConfig
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver
from tests.pretraining.test_resume import assert_same, train

CONFIG = OptimizerConfig(name="muon", learning_rate=0.01, weight_decay=0.1)


@pytest.mark.parametrize("size", ["tiny", "modern-tiny", "eurobert-tiny", "mbert", "xl"])
def test_matrices_of_layers_and_nothing_else(size):
    settings = ModelConfig(size=size, num_layers=2, hidden_size=32, num_heads=2)
    config = scratch_config(settings, vocabulary_size=40, pad=1, cls=0, sep=2)
    model = AutoModelForMaskedLM.from_config(config)
    names = {weight: name for name, weight in model.named_parameters()}
    found = {names[weight] for weight in layer_matrices(model)}
    expected = {
        name
        for name, weight in model.named_parameters()
        if weight.ndim == 2 and (".layer.0." in name or ".layer.1." in name or "layers." in name)
    }
    assert found == expected
    assert len(found) == {"modern-tiny": 8, "eurobert-tiny": 14}.get(size, 12)


def orthogonalized(matrix: torch.Tensor) -> torch.Tensor:
    """Newton and Schulz's iteration with Muon's coefficients, in float64."""
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    wide = wide / wide.norm()
    for _ in range(5):
        square = wide @ wide.T
        wide = 3.4445 * wide + (-4.775 * square + 2.0315 * square @ square) @ wide
    return wide.T if matrix.shape[0] > matrix.shape[1] else wide


def test_two_steps_by_hand():
    torch.manual_seed(1)
    matrix, vector = nn.Parameter(torch.randn(6, 4)), nn.Parameter(torch.randn(5))
    start, momentum = matrix.detach().double(), torch.zeros(6, 4, dtype=torch.float64)
    own = start
    alone = nn.Parameter(vector.detach().clone())
    optimizer = make_optimizer([matrix, vector], CONFIG, matrices={matrix})
    adamw = make_optimizer([alone], replace(CONFIG, name="adamw"))
    for _ in range(2):
        matrix.grad, vector.grad = torch.randn(6, 4), torch.randn(5)
        alone.grad = vector.grad.clone()
        momentum = 0.95 * momentum + 0.05 * matrix.grad.double()
        update = 0.05 * matrix.grad.double() + 0.95 * momentum
        own = own * (1 - 0.01 * 0.1) - 0.01 * 0.2 * 6**0.5 * orthogonalized(update)
        optimizer.step()
        adamw.step()
    # torch orthogonalizes in bfloat16, which has three digits
    assert (matrix.double() - own).norm() < 0.05 * (own - start).norm()
    assert torch.equal(vector, alone)


def muon(**changes: Any) -> Any:
    config = driver.MIXES["plain"]()
    optimizer = replace(config.optimizer, name="muon", schedule="wsd")
    stages = tuple(replace(stage, optimizer=None) for stage in config.stages)
    return replace(config, optimizer=optimizer, stages=stages, **changes)


def test_resumed_runs_are_exact(corpus: Any, tmp_path: Any) -> None:
    config, quiet = muon(), Console(quiet=True)
    pretrain(config, corpus, tmp_path / "whole", console=quiet)
    train(config, corpus, tmp_path / "run", resume=False, stop_at=3)
    train(config, corpus, tmp_path / "run", resume=True)
    assert_same(tmp_path / "run", tmp_path / "whole")
    last = max((tmp_path / "whole/checkpoints").iterdir())
    kinds = {name.rpartition("|")[2] for name in Checkpoint(last).read("optimizer")}
    assert {"momentum_buffer", "exp_avg", "exp_avg_sq"} <= kinds


def test_nothing_to_train_is_refused():
    with pytest.raises(RecipeError, match="muon has nothing to train"):
        make_optimizer([nn.Parameter(torch.ones(3, 2))], CONFIG)


def test_split_matrices_are_refused():
    with pytest.raises(RecipeError, match="muon needs whole matrices"):
        muon(distributed=DistributedConfig(strategy="fsdp"))
