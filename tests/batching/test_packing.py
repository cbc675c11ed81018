import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.batching.draws import DrawLookup
from isoglot.batching.packing import pack
from tests.batching import naive
from tests.batching.fakes import FakeSlice, Plain, WithAux, mixture, open_stream


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


def as_draws(items) -> list[naive.NaiveDraw]:
    return [
        naive.NaiveDraw(0, number, 0, 0.0, list(zip(own, lengths, strict=True)), targets)
        for number, (lengths, own, targets) in enumerate(zip(*items, strict=True))
    ]


@given(items=draws(), micro=st.integers(1, 4), rows=st.integers(1, 5), capacity=st.integers(0, 30))
@settings(max_examples=100, deadline=None)
def test_it_is_the_slow_and_obvious_packing(items, micro, rows, capacity):
    """The same micro-batch, row and offset for every sequence, and the same room left."""
    lengths, groups, targets = items
    order = np.argsort([-sum(one) for one in lengths], kind="stable")
    room = np.full((micro, 2, rows), 40, np.int64)
    room[:, 1, rows // 2 :] = 0  # a group with fewer rows
    listed = room.tolist()
    target_room = np.full(micro, capacity, np.int64)
    micro_of, row_of, offset_of = pack(
        order,
        np.concatenate([[0], np.cumsum([len(one) for one in lengths])]).astype(np.int64),
        np.array([g for one in groups for g in one], np.int32),
        np.array([n for one in lengths for n in one], np.int32),
        np.array(targets, np.int32),
        room,
        target_room,
        40,
    )
    all_draws = as_draws(items)
    left = [capacity] * micro
    expected = naive.pack([all_draws[i] for i in order], listed, left, 40)
    assert micro_of[order].tolist() == expected
    assert room.tolist() == listed
    assert target_room.tolist() == left
    starts = np.cumsum([0, *map(len, lengths)])
    for number, draw in enumerate(all_draws):
        span = slice(starts[number], starts[number + 1])
        if micro_of[number] < 0:
            assert set(row_of[span]) == {-1}
        else:
            found = zip(row_of[span].tolist(), offset_of[span].tolist(), strict=True)
            assert list(found) == draw.places


def pool_of(mixed, aux_groups, drawn: list[tuple[int, int]]):
    components, counters = np.array(drawn, np.int64).reshape(-1, 2).T
    return DrawLookup(mixed, aux_groups)(components, counters)


def check_pool(pool, expected: list[naive.NaiveDraw]) -> None:
    assert pool.components.tolist() == [draw.component for draw in expected]
    assert pool.counters.tolist() == [draw.counter for draw in expected]
    assert pool.examples.tolist() == [draw.example for draw in expected]
    assert pool.uniforms.tolist() == [draw.uniform for draw in expected]
    assert pool.targets.tolist() == [draw.targets for draw in expected]
    assert pool.tokens.tolist() == [draw.tokens for draw in expected]
    flat = [sequence for draw in expected for sequence in draw.sequences]
    assert list(zip(pool.groups.tolist(), pool.lengths.tolist(), strict=True)) == flat
    assert np.diff(pool.starts).tolist() == [len(draw.sequences) for draw in expected]
    assert (pool.starts[0], pool.starts[-1]) == (0, len(flat))


def test_draws_are_looked_up_chosen_and_joined():
    mixed = mixture(
        open_stream([FakeSlice("a", [3, 8, 13]), FakeSlice("b", [5, 6])], Plain(), WithAux()),
        open_stream([FakeSlice("c", list(range(2, 20)))], Plain(copies=3), share=0.5),
        seed=4,
        stage=2,
    )
    aux_groups = {"m1": 1}
    drawn = [(2, 0), (0, 7), (1, 1), (0, 2), (2, 40), (1, 0), (0, 0)]
    expected = [naive.look_up(mixed, aux_groups, *draw) for draw in drawn]
    pool = pool_of(mixed, aux_groups, drawn)
    check_pool(pool, expected)
    assert {group for draw in expected for group, _ in draw.sequences} == {0, 1}
    for chosen in ([4, 0, 4], [], [6], list(range(7))):
        check_pool(pool[np.array(chosen, np.int64)], [expected[i] for i in chosen])
    check_pool(pool[2:5], expected[2:5])
    check_pool(pool[:0], [])
    check_pool(pool[1:3].join(pool[5:]), [*expected[1:3], *expected[5:]])
    check_pool(pool[:0].join(pool[:0]), [])
    check_pool(pool_of(mixed, aux_groups, []), [])
