"""Whole runs with the settings of memory: the same losses where promised, and exact resume."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState
from rich.console import Console

from isoglot.errors import RecipeError
from isoglot.pretraining.build import build_train_module
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from isoglot.pretraining.config import PretrainConfig, objectives_of
from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.pretraining.memory_saving import save_memory
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver, launching
from tests.pretraining.test_resume import assert_same, train

QUIET = Console(quiet=True)
LOW_BIT = MemoryConfig(weights="bf16", moments="int8", activation_checkpointing="blocks")


def contrast(memory: MemoryConfig, **changes: Any) -> PretrainConfig:
    """Momentum contrast from the third step on, with matrices wide enough for 8 bits."""
    plain = driver.contrast()
    model = replace(plain.model, hidden_size=64)
    stages = tuple(
        replace(stage, steps=steps) for stage, steps in zip(plain.stages, (2, 4), strict=True)
    )
    return replace(plain, model=model, stages=stages, memory=memory, **changes)


@pytest.fixture
def another_precision() -> Iterator[None]:
    """Accelerate has one precision for a process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.parametrize("mix", ["slots", pytest.param("seq2seq", marks=pytest.mark.slow)])
def test_recomputed_layers_change_no_loss(mix: str, corpus: Any, tmp_path: Any) -> None:
    plain = driver.MIXES[mix]()
    plain = replace(plain, stages=tuple(replace(stage, steps=2) for stage in plain.stages))
    again = replace(plain, memory=MemoryConfig(activation_checkpointing="blocks"))
    for name, config in (("plain", plain), ("again", again)):
        pretrain(config, corpus, tmp_path / name, console=QUIET)
    assert_same(tmp_path / "again", tmp_path / "plain")


@pytest.mark.usefixtures("another_precision")
@pytest.mark.parametrize(
    "memory",
    [
        LOW_BIT,
        pytest.param(MemoryConfig(weights="bf16", offload_optimizer=True), marks=pytest.mark.slow),
    ],
    ids=["low-bit", "offload"],
)
def test_resumed_runs_are_exact(memory: MemoryConfig, corpus: Any, tmp_path: Any) -> None:
    config = contrast(memory, precision="bf16")
    pretrain(config, corpus, tmp_path / "whole", console=QUIET)
    for number, step in enumerate((1, 4)):
        train(config, corpus, tmp_path / "run", resume=number > 0, stop_at=step)
    train(config, corpus, tmp_path / "run", resume=True)
    assert_same(tmp_path / "run", tmp_path / "whole")
    saved = Checkpoint(tmp_path / "whole/checkpoints/step-00000006")
    weights, moments = saved.read("weights"), saved.read("optimizer")
    own = "encoder.model.roberta.encoder.layer.0.intermediate.dense.weight"
    averaged = [name for name in weights if name.startswith("objectives.") and own[14:] in name]
    assert weights[own].dtype is torch.bfloat16
    assert [weights[name].dtype for name in averaged] == [torch.float32]  # the momentum encoder
    kinds = {"exp_avg_codes": torch.uint8} if memory is LOW_BIT else {"master": torch.float32}
    for kind, dtype in kinds.items():
        assert moments[f"{own}|{kind}"].dtype is dtype


@pytest.mark.slow
@pytest.mark.usefixtures("another_precision")
def test_low_bit_runs_learn_what_others_learn(corpus: Any, tmp_path: Any) -> None:
    found = {}
    for name, memory in (("plain", MemoryConfig()), ("low-bit", LOW_BIT)):
        config = contrast(memory, precision="bf16")
        config = replace(config, stages=(replace(config.stages[0], steps=25),))
        pretrain(config, corpus, tmp_path / name, console=QUIET)
        losses = launching.losses(tmp_path / name / "metrics.jsonl")
        found[name] = [losses[step]["mlm/loss"] for step in range(1, 26)]
    plain, low = found["plain"], found["low-bit"]
    assert low[0] == pytest.approx(plain[0], rel=2e-2)
    assert plain[-1] < 0.93 * plain[0]
    assert low[-1] == pytest.approx(plain[-1], rel=3e-2)


def test_bf16_weights_need_bf16_computation(corpus: Any, tmp_path: Any) -> None:
    config = driver.contrast()
    objectives = objectives_of(config)
    module = build_train_module(config.model, objectives, corpus, row_length=96)
    with pytest.raises(RecipeError, match="set precision: bf16"):
        save_memory(module, MemoryConfig(weights="bf16"), mixed_precision="no")
