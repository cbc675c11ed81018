from __future__ import annotations

import numpy as np
import pytest

from isoglot.evaluate.bootstrap import paired_bootstrap


def test_a_constant_difference_is_sure():
    first = np.random.default_rng(0).random((3, 8))
    found = paired_bootstrap(first, first + 0.1, samples=500)
    assert found.mean == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))
    assert found.p < 0.01


def test_no_difference_is_not_sure():
    first = np.zeros((2, 4))
    assert paired_bootstrap(first, first, samples=200).p == 1.0


def test_noise_seldom_looks_like_a_difference():
    rng = np.random.default_rng(1)
    surprises = 0
    for _ in range(100):
        first, second = rng.normal(size=(2, 5, 12))
        surprises += paired_bootstrap(first, second, samples=200).p < 0.05
    assert surprises <= 15  # a bootstrap over few units is a little too sure; over 5 % expected


def test_one_lucky_seed_does_not_convince():
    difference = np.zeros((3, 10))
    difference[1] = 0.2
    found = paired_bootstrap(np.zeros((3, 10)), difference, samples=1000)
    assert found.low <= 0.0


def test_it_is_the_same_twice():
    first, second = np.random.default_rng(2).random((2, 3, 5))
    assert paired_bootstrap(first, second) == paired_bootstrap(first, second)
