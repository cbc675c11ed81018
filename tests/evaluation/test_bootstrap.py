from __future__ import annotations

import numpy as np
import pytest

from isoglot.evaluation.bootstrap import paired_bootstrap


def test_a_constant_difference_is_sure():
    first = np.random.default_rng(0).random((3, 8))
    found = paired_bootstrap(first, first + 0.1, samples=500)
    assert found.mean == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))
    assert found.p == pytest.approx(2 / 501), "no sample below 0, and never 0"


def test_no_difference_is_not_sure():
    first = np.zeros((2, 4))
    assert paired_bootstrap(first, first, samples=200).p == 1.0


def test_few_pairs_say_nothing_and_a_few_more_not_too_much():
    alone = paired_bootstrap(np.array([[0.5]]), np.array([[0.501]]))
    assert alone.mean == pytest.approx(0.001)
    assert (alone.low, alone.high, alone.p) == (None, None, None)
    six = paired_bootstrap(np.zeros((2, 3)), np.ones((2, 3)))
    assert six.p == pytest.approx(2 * 0.5**6), "as a sign test"


def test_tasks_count_alike_and_their_languages_are_drawn_apart():
    tasks = ["xnli"] * 10 + ["mlqa"]
    difference = np.array([[0.1] * 10 + [-0.2]])
    found = paired_bootstrap(np.zeros((1, 11)), difference, tasks)
    assert found.mean == pytest.approx(-0.05)
    assert (found.low, found.high) == pytest.approx((-0.05, -0.05)), "no task is ever left out"


def test_it_is_the_bootstrap_written_as_a_loop():
    tasks = ["a", "a", "a", "b", "b"]
    difference = np.random.default_rng(3).normal(size=(4, 5))
    rng = np.random.default_rng(4)
    means = []
    for _ in range(4000):
        drawn = difference[rng.integers(4, size=4)]
        of_a, of_b = rng.integers(0, 3, size=3), rng.integers(3, 5, size=2)
        means.append((drawn[:, of_a].mean() + drawn[:, of_b].mean()) / 2)
    found = paired_bootstrap(np.zeros((4, 5)), difference, tasks)
    low, high = np.quantile(means, [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05)


def test_noise_seldom_looks_like_a_difference():
    rng = np.random.default_rng(1)
    surprises = 0
    for _ in range(100):
        first, second = rng.normal(size=(2, 5, 12))
        p = paired_bootstrap(first, second, samples=200).p
        surprises += p is not None and p < 0.05
    assert surprises <= 15  # a bootstrap over few units is a little too sure; over 5 % expected


def test_one_lucky_seed_does_not_convince():
    difference = np.zeros((3, 10))
    difference[1] = 0.2
    found = paired_bootstrap(np.zeros((3, 10)), difference, samples=1000)
    assert found.low is not None
    assert found.low <= 0.0


def test_it_is_the_same_twice():
    first, second = np.random.default_rng(2).random((2, 3, 5))
    assert paired_bootstrap(first, second) == paired_bootstrap(first, second)
