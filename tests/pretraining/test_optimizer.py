import math

import pytest
import torch

from isoglot.errors import IsoglotError
from isoglot.pretraining.optimizer import OptimizerConfig, learning_rate, make_optimizer


def rates(**settings):
    config = OptimizerConfig(learning_rate=1.0, **settings)
    return [learning_rate(config, step, 100) for step in range(100)]


def test_warm_up_in_steps_or_as_a_ratio():
    for warmup in ({"warmup_steps": 10}, {"warmup_ratio": 0.1}, {}):
        found = rates(**warmup, schedule="constant")
        assert found[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
        assert set(found[10:]) == {1.0}


def test_both_kinds_of_warm_up_are_refused():
    with pytest.raises(IsoglotError, match="both set"):
        OptimizerConfig(warmup_steps=10, warmup_ratio=0.1)


def test_schedules_after_warm_up():
    assert rates(warmup_steps=0, schedule="linear")[50] == pytest.approx(0.5)
    assert rates(warmup_steps=20, schedule="linear")[60] == pytest.approx(0.5)
    assert rates(warmup_steps=0, schedule="linear", min_lr_ratio=0.2)[99] == pytest.approx(0.208)
    assert rates(warmup_steps=0, schedule="cosine")[25] == pytest.approx(
        (1 + math.cos(math.pi / 4)) / 2
    )
    found = rates(warmup_steps=25, schedule="inverse_sqrt")
    assert found[24] == pytest.approx(1.0)
    assert found[99] == pytest.approx(0.5)


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "inverse_sqrt"])
@pytest.mark.parametrize(
    "warmup", [{"warmup_steps": 0}, {"warmup_steps": 1}, {"warmup_steps": 7}, {"warmup_ratio": 0.5}]
)
def test_rates_are_positive_and_never_above_the_peak(schedule, warmup):
    found = rates(schedule=schedule, **warmup)
    assert all(0 < rate <= 1 + 1e-12 for rate in found)


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_matrices_decay_and_vectors_do_not(name):
    linear = torch.nn.Linear(3, 4)
    model = torch.nn.Sequential(linear, torch.nn.LayerNorm(4))
    frozen = torch.nn.Linear(2, 2).requires_grad_(requires_grad=False)
    model.append(frozen)
    optimizer = make_optimizer(model.parameters(), OptimizerConfig(name=name, weight_decay=0.3))
    decayed, plain = optimizer.param_groups
    assert [p.ndim for p in decayed["params"]] == [2]
    assert decayed["weight_decay"] == 0.3
    assert sorted(p.ndim for p in plain["params"]) == [1, 1, 1]
    assert plain["weight_decay"] == 0.0
    for weight in model.parameters():
        if weight.requires_grad:
            weight.grad = torch.ones_like(weight)
    before = linear.weight.clone()
    optimizer.step()
    assert not torch.equal(before, linear.weight)
