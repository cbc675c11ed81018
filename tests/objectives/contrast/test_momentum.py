"""Moving averages against their closed form.

The queue against a deque, on one process and on two; what it says while it is not full.
"""

from __future__ import annotations

import copy
from collections import deque

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.multiprocessing.spawn import start_processes

from isoglot.errors import RecipeError
from isoglot.objectives.contrast.info_nce import NO_ITEM
from isoglot.objectives.contrast.momentum import (
    MomentumConfig,
    MomentumEncoder,
    Queue,
    QueueConfig,
)
from isoglot.objectives.gathering import gather_micro_batches


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
    average = MomentumEncoder(original, MomentumConfig(value=0.9))
    wander(original, 99)
    average.on_stage_start()
    past = [copy.deepcopy(original)]
    for step in range(25):
        wander(original, step)
        average.update()
        past.append(copy.deepcopy(original))
    for name, found in average.module.named_parameters():
        course = [dict(module.named_parameters())[name].double() for module in past]
        expected = 0.9**25 * course[0]
        for t in range(1, 26):
            expected = expected + 0.1 * 0.9 ** (25 - t) * course[t]
        close = 1e-12 if dtype == torch.float64 else 2e-6
        assert torch.allclose(found.double(), expected, rtol=close, atol=close)
    assert int(average.num_updates) == 25


def test_bf16_weights_are_averaged_in_the_type_of_the_average():
    original = nn.Linear(4, 3)
    average = MomentumEncoder(original, MomentumConfig(value=0.75))
    before = copy.deepcopy(average.module)
    original.to(torch.bfloat16)
    wander(original, 1)
    average.update()
    triples = zip(
        average.module.parameters(), before.parameters(), original.parameters(), strict=True
    )
    for found, old, new in triples:
        assert found.dtype == torch.float32
        assert torch.allclose(found, 0.75 * old + 0.25 * new.float(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.99, 0.99, 0.99, 0.99]),
        ("linear", [0.9, 0.945, 0.99, 0.99]),
        ("exponential", [0.9, 1 - 0.1 * 10**-0.5, 0.99, 0.99]),
    ],
)
def test_the_momentum_may_grow(schedule, expected):
    settings = MomentumConfig(value=0.99, schedule=schedule, initial_value=0.9, schedule_steps=2)
    assert [settings.at(step) for step in range(4)] == pytest.approx(expected)
    original = nn.Linear(1, 1, bias=False).double()
    average = MomentumEncoder(original, settings)
    with torch.no_grad():
        original.weight.fill_(1.0)
        next(average.module.parameters()).fill_(0.0)
    behind = 1.0
    for momentum in expected:
        average.update()
        behind *= momentum
        assert 1 - next(average.module.parameters()).item() == pytest.approx(behind)


def test_it_is_frozen_saved_and_no_second_home_of_the_original():
    original = nn.Linear(3, 2)
    average = MomentumEncoder(original, MomentumConfig())
    assert set(average.state_dict()) == {"num_updates", "module.weight", "module.bias"}
    assert not any(weight.requires_grad for weight in average.parameters())
    assert not average(torch.ones(1, 3, requires_grad=True)).requires_grad
    assert torch.equal(average(torch.ones(1, 3)), original(torch.ones(1, 3)))


def test_a_module_without_weights_can_be_followed():
    average = MomentumEncoder(nn.ReLU(), MomentumConfig())
    average.on_stage_start()
    average.update()
    assert int(average.num_updates) == 1


def test_impossible_momenta_are_refused():
    with pytest.raises(RecipeError, match=r"value must be from 0 to below 1"):
        MomentumConfig(value=1.0)
    with pytest.raises(RecipeError, match=r"schedule_steps must be from 1"):
        MomentumConfig(schedule_steps=0)


SIZE = 7


def in_order(queue):
    """What a queue holds, oldest first, without what was never filled."""
    places = [(int(queue.pointer) + i) % SIZE for i in range(SIZE)]
    kept = [place for place in places if int(queue.items[place, 0]) != NO_ITEM]
    return [(queue.entries[place].tolist(), queue.items[place].tolist()) for place in kept]


def keys_of(number, first):
    """Keys that say which they are."""
    items = torch.arange(first, first + number)
    return items[:, None].float() * torch.tensor([1.0, 0.5]), torch.stack([items, items], dim=1)


@given(pushes=st.lists(st.integers(0, 2 * SIZE + 1), max_size=8))
@settings(max_examples=80, deadline=None)
def test_it_holds_what_a_deque_holds(pushes):
    queue = Queue(QueueConfig(size=SIZE), 2, num_items=2)
    expected: deque[tuple[list[float], list[int]]] = deque(maxlen=SIZE)
    total = 0
    for number in pushes:
        keys, items = keys_of(number, total)
        queue.enqueue(keys, items)
        expected.extend(zip(keys.tolist(), items.tolist(), strict=True))
        total += number
        assert in_order(queue) == list(expected)
        assert int(queue.num_filled) == len(expected)
        assert int(queue.pointer) == total % SIZE


def test_keys_are_pushed_when_the_step_ends_if_it_was_taken():
    queue = Queue(QueueConfig(size=SIZE), 2, num_items=2)
    queue.hold(*keys_of(2, 0))
    queue.hold(*keys_of(1, 2))
    assert not int(queue.num_filled)
    queue.enqueue_held(taken=True)
    assert [items[0] for _, items in in_order(queue)] == [0, 1, 2]
    queue.hold(*keys_of(2, 3))
    queue.enqueue_held(taken=False)
    queue.eval().hold(*keys_of(2, 5))
    queue.train().hold(*keys_of(1, 7))
    queue.enqueue_held(taken=True)
    assert [items[0] for _, items in in_order(queue)] == [0, 1, 2, 7]


@pytest.mark.parametrize(
    ("start", "excluded", "num_warmup_examples"),
    [("random", 0, [0, 0]), ("empty", 4, [0, 0]), ("filled", 4, [4, 0])],
)
def test_what_stands_for_missing_keys(start, excluded, num_warmup_examples):
    queue = Queue(QueueConfig(size=SIZE, start=start), 2, num_items=2)
    queue.enqueue(*keys_of(3, 0))
    assert queue.negatives(2).excluded.sum(dim=1).tolist() == [excluded, excluded]
    assert not queue.negatives(2).excluded[:, :3].any()
    assert queue.num_warmup_examples() == num_warmup_examples[0]
    queue.enqueue(*keys_of(4, 3))
    assert not queue.negatives(2).excluded.any()
    assert queue.num_warmup_examples() == num_warmup_examples[1]
    queue.on_stage_start()
    missing = 0 if start == "random" else SIZE
    assert queue.negatives(2).excluded.sum(dim=1).tolist() == [missing, missing]
    assert queue.num_warmup_examples() == (SIZE if start == "filled" else 0)


def test_a_checkpoint_holds_it():
    one, other = (Queue(QueueConfig(size=SIZE), 2, num_items=2) for _ in range(2))
    one.enqueue(*keys_of(5, 0))
    other.load_state_dict(one.state_dict())
    one.enqueue(*keys_of(4, 5))
    other.enqueue(*keys_of(4, 5))
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])


def test_random_entries_have_a_length_of_about_one():
    entries = Queue(QueueConfig(size=500), 300, num_items=1).entries
    assert entries.norm(dim=1).mean().item() == pytest.approx(1.0, abs=0.02)


def test_impossible_sizes_are_refused():
    with pytest.raises(RecipeError, match=r"size must be from 0"):
        QueueConfig(size=-1)


STEPS = [[[2, 3], [0, 1]], [[4, 0], [0, 0]], [[1, 1], [1, 6]]]
"""Keys of each micro-batch: step by step, process by process."""


def _push_on_one_of_two(rank, store, folder):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    queue = Queue(QueueConfig(size=SIZE), 2, num_items=2)
    first = 0
    gathers: list[object] = []
    gather = dist.all_gather

    def noted(*arguments):
        gathers.append(arguments)
        gather(*arguments)

    dist.all_gather = noted
    for step in STEPS:
        for place in range(2):
            begin = first + (step[0][place] if rank else 0)
            queue.hold(*keys_of(step[rank][place], begin))
            first += step[0][place] + step[1][place]
        queue.enqueue_held(taken=True)
    assert len(gathers) == 3 * len(STEPS), "the counts of a step are gathered once"
    torch.save(queue.state_dict(), f"{folder}/{rank}.pt")
    (found,) = gather_micro_batches([(torch.full((1,), rank),), (torch.full((1,), 10 + rank),)])
    assert found.tolist() == [0, 1, 10, 11]
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_hold_what_one_deque_holds(tmp_path):
    """Uneven counts, none on one process, none on either: in the order of the micro-batches."""
    given = (tmp_path / "store", tmp_path)
    start_processes(_push_on_one_of_two, given, nprocs=2, join=True, start_method="forkserver")
    expected = deque(range(sum(sum(map(sum, step)) for step in STEPS)), maxlen=SIZE)
    for rank in range(2):
        queue = Queue(QueueConfig(size=SIZE), 2, num_items=2)
        queue.load_state_dict(torch.load(tmp_path / f"{rank}.pt"))
        assert [items[0] for _, items in in_order(queue)] == list(expected)
