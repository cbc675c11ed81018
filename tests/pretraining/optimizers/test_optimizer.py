import math
from dataclasses import replace

import pytest
import torch

from isoglot.errors import IsoglotError, RecipeError
from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.pretraining.optimizers import optimizer
from isoglot.pretraining.optimizers.optimizer import (
    OptimizerConfig,
    learning_rate,
    make_optimizer,
    transfer_state,
)
from isoglot.pretraining.requirements import check_run
from isoglot.recipe import load_recipe


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
    found = rates(warmup_steps=25, warmup_start_ratio=0.2, schedule="inverse_sqrt")
    assert found[4] == pytest.approx(0.2 + 0.8 * 5 / 25)
    assert found[99] == pytest.approx(0.5)
    found = rates(warmup_steps=25, schedule="inverse_sqrt")
    assert found[24] == pytest.approx(1.0)
    assert found[99] == pytest.approx(0.5)


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "inverse_sqrt", "wsd"])
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


def slow_rate(schedule, step, steps, *, peak, warmup, start, lowest):
    """The learning rate, case by case, in the words of the settings."""
    if step < warmup:
        share = (step + 1) / warmup
        return peak * start * (1 - share) + peak * share
    if schedule == "constant":
        return peak
    if schedule == "inverse_sqrt":
        return peak * math.sqrt(warmup) / math.sqrt(step + 1)
    left = (steps - step) / (steps - warmup)
    if schedule == "linear":
        return lowest * peak + (peak - lowest * peak) * left
    angle = math.pi * (1 - left)
    return lowest * peak + (peak - lowest * peak) * (math.cos(angle) + 1) / 2


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "inverse_sqrt"])
def test_every_rate_of_every_schedule(schedule):
    config = OptimizerConfig(
        learning_rate=0.3,
        warmup_steps=8,
        schedule=schedule,
        warmup_start_ratio=0.25,
        min_lr_ratio=0.2,
    )
    for step in range(40):
        expected = slow_rate(schedule, step, 40, peak=0.3, warmup=8, start=0.25, lowest=0.2)
        assert learning_rate(config, step, 40) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shape", ["one_minus_sqrt", "linear"])
def test_rates_of_warm_up_stable_decay(shape):
    config = OptimizerConfig(
        learning_rate=0.3,
        warmup_steps=8,
        schedule="wsd",
        decay_ratio=0.25,
        decay_shape=shape,
        min_lr_ratio=0.2,
    )
    found = [learning_rate(config, step, 40) for step in range(40)]
    assert found[8:31] == pytest.approx([0.3] * 23)  # the decay begins at step 30
    for step in range(30, 40):
        done = (step - 30) / 10
        fallen = math.sqrt(done) if shape == "one_minus_sqrt" else done
        assert found[step] == pytest.approx(0.3 - (0.3 - 0.06) * fallen, rel=1e-12)
    # a longer run has the same rates until the shorter one decays
    assert [learning_rate(config, step, 80) for step in range(30)] == found[:30]


def test_rates_at_the_edges():
    """No step is left after warm-up, or warm-up has no step."""
    config = OptimizerConfig(learning_rate=0.3, warmup_steps=4, schedule="linear")
    assert [learning_rate(config, step, 4) for step in (3, 4)] == [pytest.approx(0.3)] * 2
    config = OptimizerConfig(learning_rate=0.3, warmup_steps=0, schedule="inverse_sqrt")
    assert learning_rate(config, 8, 100) == pytest.approx(0.1)
    assert OptimizerConfig(warmup_ratio=0.25).num_warmup_steps(30) == 8
    assert OptimizerConfig().num_warmup_steps(30) == 3


def test_the_optimizer_is_the_one_that_was_named():
    weights = list(torch.nn.Linear(3, 4).parameters())
    assert type(make_optimizer(weights, OptimizerConfig(name="adamw"))).__name__ == "AdamW"
    assert type(make_optimizer(weights, OptimizerConfig(name="lamb"))).__name__ == "Lamb"


def test_moments_are_kept_for_the_same_optimizer_and_refused_for_another():
    weights = list(torch.nn.Linear(3, 4).parameters())
    before, after = (make_optimizer(weights, OptimizerConfig(name="adamw")) for _ in range(2))
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    before.step()
    before.param_groups[0] |= {"recorded": 7, "lr": 0.5}
    transfer_state(before, after)
    assert all(after.state[weight] is before.state[weight] for weight in weights)
    assert after.param_groups[0]["recorded"] == 7
    assert after.param_groups[0]["lr"] != 0.5, "settings are the new stage's"
    with pytest.raises(IsoglotError, match="keep_optimizer"):
        transfer_state(before, make_optimizer(weights, OptimizerConfig(name="lamb")))


@pytest.mark.parametrize(
    ("changes", "extra"),
    [
        ({"optimizer": OptimizerConfig(name="lamb")}, "lamb"),
        ({"memory": MemoryConfig(moments="int8")}, "low-bit"),
    ],
)
def test_a_missing_package_is_told_before_the_corpus_is_read(monkeypatch, tmp_path, changes, extra):
    monkeypatch.setattr(optimizer, "find_spec", lambda _: None)
    config = replace(load_recipe("tiny"), **changes)
    with pytest.raises(RecipeError, match=rf"pip install 'isoglot\[{extra}\]'"):
        check_run(config, tmp_path / "run", resume=False)
    check_run(load_recipe("tiny"), tmp_path / "run", resume=False)
