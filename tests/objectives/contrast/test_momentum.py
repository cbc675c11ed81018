"""Moving averages against their closed form."""

import copy

import pytest
import torch
from torch import nn

from isoglot.errors import RecipeError
from isoglot.objectives.contrast import Follower, MomentumConfig


def wander(module, seed):
    """Some optimizer's step."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(torch.randn(weight.shape, dtype=weight.dtype, generator=generator))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_weights_are_the_closed_form_average(dtype):
    """θ_n = m^n θ_0 + (1 - m) Σ m^(n - t) q_t"""
    original = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3)).to(dtype)
    follower = Follower(original, MomentumConfig(value=0.9))
    wander(original, 99)
    follower.begin()
    past = [copy.deepcopy(original)]
    for step in range(25):
        wander(original, step)
        follower.move()
        past.append(copy.deepcopy(original))
    for name, found in follower.copy.named_parameters():
        course = [dict(module.named_parameters())[name].double() for module in past]
        expected = 0.9**25 * course[0]
        for t in range(1, 26):
            expected = expected + 0.1 * 0.9 ** (25 - t) * course[t]
        close = 1e-12 if dtype == torch.float64 else 2e-6
        assert torch.allclose(found.double(), expected, rtol=close, atol=close)
    assert int(follower.moves) == 25


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.99, 0.99, 0.99, 0.99]),
        ("linear", [0.9, 0.945, 0.99, 0.99]),
        ("exponential", [0.9, 1 - 0.1 * 10**-0.5, 0.99, 0.99]),
    ],
)
def test_the_momentum_may_grow(schedule, expected):
    settings = MomentumConfig(value=0.99, schedule=schedule, first=0.9, moves=2)
    assert [settings.at(move) for move in range(4)] == pytest.approx(expected)
    original = nn.Linear(1, 1, bias=False).double()
    follower = Follower(original, settings)
    with torch.no_grad():
        original.weight.fill_(1.0)
        next(follower.copy.parameters()).fill_(0.0)
    behind = 1.0
    for momentum in expected:
        follower.move()
        behind *= momentum
        assert 1 - next(follower.copy.parameters()).item() == pytest.approx(behind)


def test_it_is_frozen_saved_and_no_second_home_of_the_original():
    original = nn.Linear(3, 2)
    follower = Follower(original, MomentumConfig())
    assert set(follower.state_dict()) == {"moves", "copy.weight", "copy.bias"}
    assert not any(weight.requires_grad for weight in follower.parameters())
    assert not follower(torch.ones(1, 3, requires_grad=True)).requires_grad
    assert torch.equal(follower(torch.ones(1, 3)), original(torch.ones(1, 3)))


def test_a_module_without_weights_can_be_followed():
    follower = Follower(nn.ReLU(), MomentumConfig())
    follower.begin()
    follower.move()
    assert int(follower.moves) == 1


def test_impossible_momenta_are_refused():
    with pytest.raises(RecipeError, match=r"momentum\.value must be from 0 to below 1"):
        MomentumConfig(value=1.0)
    with pytest.raises(RecipeError, match=r"momentum\.moves must be 1 or more"):
        MomentumConfig(moves=0)
