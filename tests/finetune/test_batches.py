from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.finetune.batches import Batches


@settings(max_examples=60, deadline=None)
@given(
    number=st.integers(1, 60),
    couples=st.integers(0, 20),
    half=st.integers(1, 6),
    seed=st.integers(0, 5),
)
def test_each_index_once_in_an_epoch_and_couples_in_one_batch(number, couples, half, seed):
    together = [(2 * i, 2 * i + 1) for i in range(min(couples, number // 2))]
    batches = Batches(number, 2 * half, seed=seed, couples=together)
    for _ in range(2):
        found = list(batches)
        assert len(found) == len(batches)
        assert sorted(i for batch in found for i in batch) == list(range(number))
        assert all(len(batch) == 2 * half for batch in found[:-1])
        for first, second in together:
            assert any(first in batch and second in batch for batch in found)


def test_every_epoch_has_its_order_and_the_seed_decides_it():
    one, same, other = (Batches(40, 4, seed=seed) for seed in (0, 0, 1))
    first, second = list(one), list(one)
    assert first != second
    assert list(same) == first
    assert list(other) != first


def test_singles_are_coupled_anew_in_each_epoch():
    batches = Batches(20, 2, seed=0, couples=[(0, 1)])
    first, second = ({frozenset(batch) for batch in batches} for _ in range(2))
    assert frozenset((0, 1)) in first & second
    assert first != second
