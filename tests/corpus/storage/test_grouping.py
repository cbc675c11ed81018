import numpy as np
import pytest

from isoglot.corpus.storage.grouping import ascending_order, group_places


@pytest.mark.parametrize("top", [1, 7, 2**16 - 1, 2**16, 2**40])
def test_places_of_equal_numbers(top):
    numbers = np.random.default_rng(0).integers(0, top, 200)
    numbers[::3] = top
    assert ascending_order(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()
    found = list(group_places(numbers))
    assert [number for number, _ in found] == sorted(set(numbers.tolist()))
    for number, places in found:
        assert places.tolist() == np.flatnonzero(numbers == number).tolist()


def test_no_numbers():
    assert list(group_places(np.zeros(0, np.int64))) == []
    assert ascending_order(np.zeros(0, np.int64)).tolist() == []
