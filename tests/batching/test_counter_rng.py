import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.batching.counter_rng import key_of, permute, uniform
from tests.batching import naive


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


@given(key=st.integers(0, 2**64 - 1), counters=st.lists(st.integers(0, 2**62), max_size=9))
@settings(max_examples=60, deadline=None)
def test_uniform_is_that_of_python_integers(key, counters):
    found = uniform(key, np.array(counters, np.int64))
    assert found.tolist() == [naive.uniform(key, counter) for counter in counters]


@given(n=st.integers(1, 2**40), key=st.integers(0, 2**64 - 1), data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_permutation_is_that_of_python_integers(n, key, data):
    indices = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=9))
    found = permute(n, key, np.array(indices, np.int64))
    assert found.tolist() == [naive.permute(n, key, index) for index in indices]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 17, 64, 65, 256, 257])
def test_the_permutation_of_few_examples(n):
    for key in (0, 1, 2**64 - 1):
        expected = [naive.permute(n, key, index) for index in range(n)]
        assert permute(n, key, np.arange(n)).tolist() == expected


def test_a_key_is_of_names_and_kinds():
    """Little-endian bytes of BLAKE2b; a number and the same number as text differ."""
    digest = hashlib.blake2b(b"int:7\x1fstr:a\x1fint:-1", digest_size=8).digest()
    assert key_of(7, "a", -1) == int.from_bytes(digest, "little")
    assert len({key_of(1, "2"), key_of("1", 2), key_of(12), key_of("1", "2")}) == 4
