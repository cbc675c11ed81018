import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.batching.packing import pack


@st.composite
def draws(draw):
    lengths = draw(
        st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=3), min_size=1, max_size=60)
    )
    groups = [[draw(st.integers(0, 1)) if i else 0 for i in range(len(one))] for one in lengths]
    targets = [draw(st.integers(0, 5)) for _ in lengths]
    return lengths, groups, targets


@given(items=draws(), micro=st.integers(1, 4), rows=st.integers(1, 5), capacity=st.integers(0, 30))
@settings(max_examples=150, deadline=None)
def test_what_is_placed_fits_and_stays_together(items, micro, rows, capacity):
    lengths, groups, targets = items
    row_length = 40
    starts = np.concatenate([[0], np.cumsum([len(one) for one in lengths])]).astype(np.int64)
    flat = np.array([n for one in lengths for n in one], np.int32)
    flat_groups = np.array([g for one in groups for g in one], np.int32)
    room = np.full((micro, 2, rows), row_length, np.int64)
    micro_of, row_of, offset_of = pack(
        np.arange(len(lengths)),
        starts,
        flat_groups,
        flat,
        np.array(targets, np.int32),
        room,
        np.full(micro, capacity, np.int64),
        row_length,
    )
    taken = np.zeros((micro, 2, rows, row_length), int)
    sites = np.zeros(micro, int)
    for draw in range(len(lengths)):
        places = range(starts[draw], starts[draw + 1])
        if micro_of[draw] < 0:
            assert all(row_of[place] == -1 for place in places)
            continue
        sites[micro_of[draw]] += targets[draw]
        for place in places:
            assert offset_of[place] + flat[place] <= row_length
            taken[
                micro_of[draw],
                flat_groups[place],
                row_of[place],
                offset_of[place] : offset_of[place] + flat[place],
            ] += 1
    assert taken.max(initial=0) <= 1, "no two sequences overlap"
    assert (sites <= capacity).all()
    assert (room == row_length - taken.sum(axis=-1)).all(), "the room left is what is left"


def test_a_draw_that_fits_somewhere_is_placed():
    # the roomiest micro-batch has no row for it; the other one has
    room = np.array([[[10, 10, 10]], [[25, 0, 0]]], np.int64)
    micro_of, row_of, _ = pack(
        np.arange(1),
        np.array([0, 1]),
        np.zeros(1, np.int32),
        np.array([20], np.int32),
        np.zeros(1, np.int32),
        room,
        np.full(2, 9, np.int64),
        25,
    )
    assert micro_of.tolist() == [1]
    assert row_of.tolist() == [0]
