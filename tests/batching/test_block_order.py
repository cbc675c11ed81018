from __future__ import annotations

from functools import partial
from itertools import accumulate

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from isoglot.batching.block_order import BlockOrder
from isoglot.batching.counter_rng import key_of, permute
from isoglot.batching.mixture import Component
from tests.batching.fakes import FakeSlice

BLOCKS = st.lists(st.integers(0, 9), min_size=1, max_size=40).filter(any)


def order(sizes: list[int], together: int, name: str = "text") -> BlockOrder:
    return BlockOrder(np.cumsum(sizes), together, partial(key_of, 3, 0, name))


def written_out(sizes: list[int], together: int, epoch: int) -> list[int]:
    """The whole epoch as lists: permute blocks, join some, permute their examples."""
    starts = [0, *accumulate(sizes)]
    key = partial(key_of, 3, 0, "text", epoch)
    blocks = [
        list(range(starts[b], starts[b] + sizes[b]))
        for b in permute(len(sizes), key("blocks"), np.arange(len(sizes)))
    ]
    windows, left = [], blocks
    while len(left) >= 2 * together:
        windows.append(left[:together])
        left = left[together:]
    found: list[int] = []
    for number, window in enumerate([*windows, left]):
        joined = [example for block in window for example in block]
        if joined:
            places = permute(len(joined), key("window", number), np.arange(len(joined)))
            found += [joined[place] for place in places]
    return found


@given(sizes=BLOCKS, together=st.integers(1, 12), epoch=st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_every_example_comes_once_in_an_epoch_as_written_out(sizes, together, epoch):
    total = sum(sizes)
    found = order(sizes, together).indices(epoch, np.arange(total)).tolist()
    assert sorted(found) == list(range(total))
    assert found == written_out(sizes, together, epoch)


@given(sizes=BLOCKS, together=st.integers(1, 12), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_place_needs_no_other(sizes, together, data):
    places = data.draw(st.lists(st.integers(0, sum(sizes) - 1), min_size=1, max_size=9))
    asked = order(sizes, together).indices(1, np.array(places)).tolist()
    alone = [int(order(sizes, together).indices(1, np.array([one]))[0]) for one in places]
    assert asked == alone


def test_a_window_reads_no_other_block_and_mixes_its_own():
    sizes = [100] * 64
    found = order(sizes, 8).indices(0, np.arange(6400)) // 100
    for window in found.reshape(8, 800):
        assert len(set(window.tolist())) == 8
        # neighbors are of one block as often as chance has it: 1 in 8
        assert 0.06 < (window[1:] == window[:-1]).mean() < 0.19
    assert len({tuple(sorted(set(window.tolist()))) for window in found.reshape(8, 800)}) == 8


def test_epochs_and_components_have_orders_of_their_own():
    places = np.arange(640)
    first = order([10] * 64, 4).indices(0, places)
    assert (first == order([10] * 64, 4).indices(1, places)).mean() < 0.05
    assert (first == order([10] * 64, 4, "other").indices(0, places)).mean() < 0.05


class SlicedInThree(FakeSlice):
    @override
    def block_ends(self):
        third = self.num_examples // 3
        return np.array([third, 2 * third, self.num_examples])


def test_a_component_of_several_slices_has_the_blocks_of_all():
    slices = (SlicedInThree("aa", [5] * 30), FakeSlice("bb", [5] * 7))
    component = Component(0, "union", slices, (), seed=1, stage=0, shuffle_blocks=1)
    epoch = component.indices(np.arange(37, 74))
    assert sorted(epoch.tolist()) == list(range(37))
    blocks = np.searchsorted([10, 20, 30, 37], epoch, "right")
    # with one block at a time, a block is read to its end before the next
    assert (np.diff(blocks) != 0).sum() == 3


def test_without_blocks_the_order_is_the_one_it_was():
    component = Component(0, "0:text/a", (FakeSlice("a", [5] * 20),), (), seed=0, stage=0)
    expected = permute(20, key_of(0, 0, "0:text/a", 2), np.arange(20))
    assert component.indices(np.arange(40, 60)).tolist() == expected.tolist()
