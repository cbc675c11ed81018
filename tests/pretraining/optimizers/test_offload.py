"""AdamW on the host: the same update as torch's, and float32 weights behind bf16 ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.pretraining.optimizers.offload import MASTER
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer

CONFIG = OptimizerConfig(learning_rate=0.01, weight_decay=0.1)
HOST = MemoryConfig(offload_optimizer=True)


def models(dtype: torch.dtype = torch.float32) -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(0)
    one = nn.Linear(16, 8)
    other = nn.Linear(16, 8)
    other.load_state_dict(one.state_dict())
    return one, other.to(dtype)


def set_gradients(step: int, *found: nn.Module) -> None:
    for model in found:
        generator = torch.Generator().manual_seed(step)
        for weight in model.parameters():
            drawn = torch.randn(weight.shape, generator=generator).bfloat16()
            weight.grad = drawn.to(weight.dtype)


def test_update_is_torch_adamw() -> None:
    plain, hosted = models()
    optimizers = [
        make_optimizer(plain.parameters(), CONFIG),
        make_optimizer(hosted.parameters(), CONFIG, HOST),
    ]
    for step in range(5):
        set_gradients(step, plain, hosted)
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(plain.parameters(), hosted.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
    assert MASTER not in optimizers[1].state[hosted.weight]


def test_bf16_weights_follow_float32_ones() -> None:
    plain, hosted = models(torch.bfloat16)
    plain.load_state_dict(hosted.state_dict())  # both begin with the same numbers
    memory = MemoryConfig(weights="bf16", offload_optimizer=True)
    optimizers = [
        make_optimizer(plain.parameters(), CONFIG),
        make_optimizer(hosted.parameters(), CONFIG, memory),
    ]
    for step in range(20):
        set_gradients(step, plain, hosted)
        for optimizer in optimizers:
            optimizer.step()
    master = optimizers[1].state[hosted.weight][MASTER]
    torch.testing.assert_close(master, plain.weight.detach(), rtol=1e-6, atol=1e-7)
    assert torch.equal(hosted.weight, plain.weight.to(torch.bfloat16))


def test_weights_that_were_set_meanwhile_are_taken_over() -> None:
    """A restored checkpoint sets the weights of a model after its optimizer was made."""
    _, hosted = models(torch.bfloat16)
    memory = MemoryConfig(weights="bf16", offload_optimizer=True)
    optimizer = make_optimizer(hosted.parameters(), CONFIG, memory)
    set_gradients(0, hosted)
    optimizer.step()
    fresh = make_optimizer(hosted.parameters(), CONFIG, memory)
    fresh.load_state_dict(optimizer.state_dict())
    with torch.no_grad():
        hosted.weight.fill_(2.0)
    set_gradients(1, hosted)
    fresh.step()
    assert hosted.weight.detach().float().mean().item() == pytest.approx(2.0, abs=0.05)
