"""AdamW with bf16 weights or low-bit moments, against float64 and against torch's AdamW."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.pretraining.optimizers import low_bit
from isoglot.pretraining.optimizers.low_bit import (
    LowBitAdamW,
    block_size,
    moment_bytes,
    moment_type,
    part_values,
    row_parts,
)
from isoglot.pretraining.optimizers.optimizer import (
    OptimizerConfig,
    make_optimizer,
    set_learning_rate,
    supports_device_skip,
)

CONFIG = OptimizerConfig(learning_rate=0.01, weight_decay=0.1)


def gradients(step: int, weights: list[nn.Parameter]) -> None:
    generator = torch.Generator().manual_seed(step)
    for weight in weights:
        size = torch.rand(len(weight), generator=generator).view(-1, *[1] * (weight.ndim - 1))
        weight.grad = (torch.randn(weight.shape, generator=generator) * size).to(weight.dtype)


def weights_of(dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(7)
    shapes = [(24, 512), (30, 384), (40, 30), (512,)]
    return [
        nn.Parameter(torch.randn(shape, generator=generator).to(dtype if len(shape) > 1 else None))
        for shape in shapes
    ]


def naive_adamw(
    weight: np.ndarray[Any, Any], steps: list[np.ndarray[Any, Any]], decay: float
) -> np.ndarray[Any, Any]:
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    for number, gradient in enumerate(steps, start=1):
        weight = weight - CONFIG.learning_rate * decay * weight
        first = 0.9 * first + 0.1 * gradient
        second = 0.98 * second + 0.02 * gradient**2
        root = np.sqrt(second / (1 - 0.98**number)) + CONFIG.eps
        weight = weight - CONFIG.learning_rate * (first / (1 - 0.9**number)) / root
    return weight


@pytest.mark.parametrize(
    ("moments", "largest", "mean"),
    [("float32", 1e-6, 1e-6), ("bf16", 4e-3, 1e-4), ("int8", 0.05, 2e-3)],
)
def test_update_is_adamw(moments: Any, largest: float, mean: float) -> None:
    memory = MemoryConfig(moments=moments)
    weights, before = weights_of(), [weight.detach().double().numpy() for weight in weights_of()]
    groups = [
        {"params": [one for one in weights if one.ndim > 1], "weight_decay": 0.1},
        {"params": [one for one in weights if one.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = LowBitAdamW(groups, CONFIG, memory, seed=0)
    taken: list[list[np.ndarray[Any, Any]]] = [[] for _ in weights]
    for step in range(12):
        gradients(step, weights)
        for of_weight, weight in zip(taken, weights, strict=True):
            assert weight.grad is not None
            of_weight.append(weight.grad.double().numpy())
        optimizer.step()
    for weight, start, steps in zip(weights, before, taken, strict=True):
        expected = naive_adamw(start, steps, 0.1 if weight.ndim > 1 else 0.0)
        error = np.abs(weight.detach().numpy() - expected)
        assert error.max() < largest
        assert error.mean() < mean
        if moments == "int8" and moment_type(weight.shape, memory) == "float32":
            assert error.max() < 1e-6  # narrow and short ones are not quantized


def test_moments_are_the_nearest_codes_of_blocks_inside_rows() -> None:
    weight = nn.Parameter(torch.zeros(24, 384))
    optimizer = make_optimizer([weight], CONFIG, MemoryConfig(moments="int8"))
    gradients(0, [weight])
    optimizer.step()
    state = optimizer.state[weight]
    assert weight.grad is not None
    wanted = (0.1 * weight.grad.double()).view(24, 3, 128)  # the first moment after one step
    largest = wanted.abs().amax(-1)
    assert state["exp_avg_scale"].shape == (24, 3)
    torch.testing.assert_close(state["exp_avg_scale"].double(), largest)
    table = low_bit._code_values(True, torch.device("cpu")).double()
    found = table[state["exp_avg_codes"].long()].view(24, 3, 128)
    ratio = wanted / largest[..., None]
    nearest = (table - ratio[..., None]).abs().amin(-1)
    torch.testing.assert_close((found - ratio).abs(), nearest, rtol=0, atol=1e-6)


def test_rows_have_the_same_moments_wherever_they_are() -> None:
    whole = nn.Parameter(torch.randn(32, 512, generator=torch.Generator().manual_seed(0)))
    parts = [nn.Parameter(part.detach().clone()) for part in whole.split(16)]
    memory = MemoryConfig(moments="int8")
    of_whole, of_parts = (
        make_optimizer([whole], CONFIG, memory),
        make_optimizer(parts, CONFIG, memory),
    )
    for step in range(3):
        gradients(step, [whole])
        assert whole.grad is not None
        for part, gradient in zip(parts, whole.grad.split(16), strict=True):
            part.grad = gradient
        of_whole.step()
        of_parts.step()
    assert torch.equal(whole, torch.cat(list(parts)))


@pytest.mark.parametrize("moments", ["float32", "bf16", "int8"])
def test_updates_in_parts_are_the_update_of_the_whole_weight(
    monkeypatch: pytest.MonkeyPatch, moments: Any
) -> None:
    def after_steps(values: int) -> tuple[list[nn.Parameter], dict[str, Tensor]]:
        monkeypatch.setattr(low_bit, "PART_VALUES", values)
        weights = weights_of()
        optimizer = make_optimizer(weights, CONFIG, MemoryConfig(moments=moments))
        for step in range(3):
            gradients(step, weights)
            optimizer.step()
        return weights, optimizer.state[weights[0]]

    (whole, state), (parts, state_of_parts) = after_steps(2**26), after_steps(5 * 512)
    assert all(map(torch.equal, whole, parts))
    assert all(torch.equal(value, state_of_parts[name]) for name, value in state.items())


@given(shape=st.lists(st.integers(0, 40), min_size=0, max_size=3), values=st.integers(1, 300))
def test_parts_are_whole_rows_and_every_row_once(shape: list[int], values: int) -> None:
    size = torch.Size(shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(low_bit, "PART_VALUES", values)
        parts, largest = list(row_parts(size)), part_values(size)
    if not shape:
        assert parts == [slice(None)]
        assert largest == 1
        return
    rows = [row for part in parts for row in range(shape[0])[part]]
    assert rows == list(range(shape[0]))
    width = math.prod(shape[1:])
    numbers = [width * len(range(shape[0])[part]) for part in parts]
    assert largest == max(numbers, default=0)
    assert largest <= max(values, width)


def test_small_updates_of_bf16_weights_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded to the nearest, 1 - 1e-4 is 1 in bf16, and no weight would ever move."""
    monkeypatch.setattr(low_bit, "PART_VALUES", 100 * 512)  # three parts
    weight = nn.Parameter(torch.ones(256, 512, dtype=torch.bfloat16))
    config = OptimizerConfig(learning_rate=1e-4, weight_decay=0.0)
    optimizer = make_optimizer([weight], config, MemoryConfig(weights="bf16"), seed=3)
    for _ in range(20):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    moved = 1 - weight.detach().double()
    assert moved.mean().item() == pytest.approx(20e-4, rel=0.05)
    # each part has random bits of its own
    assert not torch.equal(weight[:86], weight[86:172])


def trained(
    memory: MemoryConfig, dtype: torch.dtype, *, stop: int | None, seed: int = 5
) -> list[Tensor]:
    """Six steps, with a new optimizer that gets the state after `stop` steps."""
    weights = weights_of(dtype)
    optimizer = make_optimizer(weights, CONFIG, memory, seed=seed)
    for step in range(6):
        if step == stop:
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer = make_optimizer(weights, CONFIG, memory, seed=seed)
            optimizer.load_state_dict(saved)
        set_learning_rate(optimizer, 0.01 / (1 + step))
        gradients(step, weights)
        torch.rand(step)  # rounding does not depend on what else was drawn
        optimizer.step()
    return [weight.detach() for weight in weights]


@pytest.mark.parametrize("moments", ["float32", "bf16", "int8"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("offload", [False, True])
def test_resumed_state_gives_the_same_weights(
    moments: Any, dtype: torch.dtype, offload: bool
) -> None:
    weights: Any = "bf16" if dtype == torch.bfloat16 else "float32"
    if offload and moments != "float32":
        pytest.skip("refused: see test_memory_config")
    memory = MemoryConfig(weights=weights, moments=moments, offload_optimizer=offload)
    whole = trained(memory, dtype, stop=None)
    resumed = trained(memory, dtype, stop=3)
    for one, other in zip(whole, resumed, strict=True):
        assert torch.equal(one, other)


def test_rounding_depends_on_the_seed() -> None:
    memory = MemoryConfig(weights="bf16")
    one, other = (trained(memory, torch.bfloat16, stop=None, seed=seed)[0] for seed in (5, 6))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("moments", ["float32", "bf16", "int8"])
def test_moment_bytes_are_those_of_the_state(moments: Any) -> None:
    memory, weights = MemoryConfig(weights="bf16", moments=moments), weights_of(torch.bfloat16)
    optimizer = make_optimizer(weights, CONFIG, memory)
    gradients(0, weights)
    optimizer.step()
    for weight in weights:
        state = optimizer.state[weight]
        found = sum(value.nbytes for key, value in state.items() if key != "step")
        assert found == moment_bytes(weight.shape, memory)


def test_a_step_that_is_not_finite_is_skipped_by_the_host() -> None:
    optimizer = make_optimizer(weights_of(), CONFIG, MemoryConfig(moments="int8"))
    assert not supports_device_skip(optimizer)


def test_block_sizes() -> None:
    sizes = [block_size(torch.Size(shape)) for shape in ((9, 768), (9, 384), (9, 4, 8), (9, 30))]
    assert sizes == [256, 128, 32, 2]
