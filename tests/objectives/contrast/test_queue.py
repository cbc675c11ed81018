"""The queue against a deque, on one process and on two; what it says while it is not full."""

from collections import deque

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.multiprocessing.spawn import start_processes

from isoglot.errors import RecipeError
from isoglot.objectives.contrast import NO_ITEM, Queue, QueueConfig, gathered

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
    queue = Queue(QueueConfig(size=SIZE), 2, numbers=2)
    expected: deque[tuple[list[float], list[int]]] = deque(maxlen=SIZE)
    total = 0
    for number in pushes:
        keys, items = keys_of(number, total)
        queue.push(keys, items)
        expected.extend(zip(keys.tolist(), items.tolist(), strict=True))
        total += number
        assert in_order(queue) == list(expected)
        assert int(queue.filled) == len(expected)
        assert int(queue.pointer) == total % SIZE


def test_keys_are_pushed_when_the_step_ends_if_it_was_taken():
    queue = Queue(QueueConfig(size=SIZE), 2, numbers=2)
    queue.hold(*keys_of(2, 0))
    queue.hold(*keys_of(1, 2))
    assert not int(queue.filled)
    queue.settle(taken=True)
    assert [items[0] for _, items in in_order(queue)] == [0, 1, 2]
    queue.hold(*keys_of(2, 3))
    queue.settle(taken=False)
    queue.eval().hold(*keys_of(2, 5))
    queue.train().hold(*keys_of(1, 7))
    queue.settle(taken=True)
    assert [items[0] for _, items in in_order(queue)] == [0, 1, 2, 7]


@pytest.mark.parametrize(
    ("start", "left_out", "wanting"),
    [("random", 0, [0, 0]), ("empty", 4, [0, 0]), ("filled", 4, [4, 0])],
)
def test_what_stands_for_missing_keys(start, left_out, wanting):
    queue = Queue(QueueConfig(size=SIZE, start=start), 2, numbers=2)
    queue.push(*keys_of(3, 0))
    assert queue.negatives(2).left_out.sum(dim=1).tolist() == [left_out, left_out]
    assert not queue.negatives(2).left_out[:, :3].any()
    assert queue.wanting() == wanting[0]
    queue.push(*keys_of(4, 3))
    assert not queue.negatives(2).left_out.any()
    assert queue.wanting() == wanting[1]
    queue.begin()
    missing = 0 if start == "random" else SIZE
    assert queue.negatives(2).left_out.sum(dim=1).tolist() == [missing, missing]
    assert queue.wanting() == (SIZE if start == "filled" else 0)


def test_a_checkpoint_holds_it():
    one, other = (Queue(QueueConfig(size=SIZE), 2, numbers=2) for _ in range(2))
    one.push(*keys_of(5, 0))
    other.load_state_dict(one.state_dict())
    one.push(*keys_of(4, 5))
    other.push(*keys_of(4, 5))
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])


def test_random_entries_have_a_length_of_about_one():
    entries = Queue(QueueConfig(size=500), 300, numbers=1).entries
    assert entries.norm(dim=1).mean().item() == pytest.approx(1.0, abs=0.02)


def test_impossible_sizes_are_refused():
    with pytest.raises(RecipeError, match=r"queue\.size must not be negative"):
        QueueConfig(size=-1)


STEPS = [[[2, 3], [0, 1]], [[4, 0], [0, 0]], [[1, 1], [1, 6]]]
"""Keys of each micro-batch: step by step, process by process."""


def _push_on_one_of_two(rank, store, folder):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    queue = Queue(QueueConfig(size=SIZE), 2, numbers=2)
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
        queue.settle(taken=True)
    assert len(gathers) == 3 * len(STEPS), "the counts of a step are gathered once"
    torch.save(queue.state_dict(), f"{folder}/{rank}.pt")
    (found,) = gathered([(torch.full((1,), rank),), (torch.full((1,), 10 + rank),)])
    assert found.tolist() == [0, 1, 10, 11]
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_hold_what_one_deque_holds(tmp_path):
    """Uneven counts, none on one process, none on either: in the order of the micro-batches."""
    given = (tmp_path / "store", tmp_path)
    start_processes(_push_on_one_of_two, given, nprocs=2, join=True, start_method="forkserver")
    expected = deque(range(sum(sum(map(sum, step)) for step in STEPS)), maxlen=SIZE)
    for rank in range(2):
        queue = Queue(QueueConfig(size=SIZE), 2, numbers=2)
        queue.load_state_dict(torch.load(tmp_path / f"{rank}.pt"))
        assert [items[0] for _, items in in_order(queue)] == list(expected)
