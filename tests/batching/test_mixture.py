import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.batching.mixture import key_of, permute, uniform


@given(n=st.integers(1, 3000), key=st.integers(0, 2**64 - 1))
@settings(max_examples=60, deadline=None)
def test_it_is_a_permutation(n, key):
    assert sorted(permute(n, key, np.arange(n)).tolist()) == list(range(n))


@given(n=st.integers(1, 10**12), key=st.integers(0, 2**64 - 1), data=st.data())
@settings(max_examples=60, deadline=None)
def test_an_index_is_sent_to_the_same_place_alone_or_in_company(n, key, data):
    indices = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20)))
    together = permute(n, key, indices)
    alone = [int(permute(n, key, indices[i : i + 1])[0]) for i in range(len(indices))]
    assert together.tolist() == alone
    assert all(0 <= image < n for image in alone)


def test_keys_give_unrelated_orders():
    n = 2000
    first, second = (permute(n, key_of(1, "text", epoch), np.arange(n)) for epoch in (0, 1))
    assert (first == second).mean() < 0.01
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1
    assert abs(np.corrcoef(first, np.arange(n))[0, 1]) < 0.1


def test_orders_are_the_same_on_every_machine():
    assert permute(10, key_of(0, 0, "0:text/wiki/en", 0), np.arange(10)).tolist() == [
        3,
        6,
        8,
        4,
        7,
        0,
        1,
        5,
        2,
        9,
    ]


def test_uniform_is_uniform_and_needs_no_past():
    points = uniform(7, np.arange(50_000))
    assert points[1234] == uniform(7, np.array([1234]))[0]
    assert points.min() >= 0
    assert points.max() < 1
    counts = np.bincount((points * 20).astype(int), minlength=20)
    assert ((counts - 2500) ** 2 / 2500).sum() < 45  # chi-square, 19 degrees, p < 0.001
