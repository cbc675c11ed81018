from collections import Counter, defaultdict
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from isoglot.batching.builder import BatchBuilder
from isoglot.batching.language_shares import smoothed_shares
from isoglot.batching.planner import BatchConfig, Planner
from isoglot.types import Cursor, Draw
from tests.batching.fakes import VOCABULARY, FakeSlice, Plain, WithAux, mixture, open_stream


def planner(mixed, *, rows=4, micro_rows=2, row_length=32, target_capacity=None):
    shape = BatchConfig(rows=rows, micro_rows=micro_rows, row_length=row_length)
    return Planner(mixed, shape, target_capacity=target_capacity)


def placed(plans):
    """(cell, counter, example) of every draw of a step."""
    return [
        row
        for plan in plans
        for row in zip(
            plan.draws.components.tolist(),
            plan.draws.counters.tolist(),
            plan.draws.examples.tolist(),
            strict=True,
        )
    ]


sizes = st.lists(st.integers(1, 32), min_size=1, max_size=40)


@given(
    parts=st.lists(sizes, min_size=1, max_size=3),
    seed=st.integers(0, 2**32),
    steps=st.integers(1, 12),
    epochs=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_every_example_is_seen_once_in_each_epoch(parts, seed, steps, epochs):
    stream = open_stream(
        [FakeSlice(f"l{i}", examples) for i, examples in enumerate(parts)],
        Plain(),
        sampling="epochs" if epochs else "languages",
    )
    mixed = mixture(stream, seed=seed)
    plan = planner(mixed)
    cursor, seen = Cursor(), []
    for _ in range(steps):
        plans = plan.plan(cursor)
        seen += placed(plans)
        cursor = plans[0].cursor
    waiting = set(cursor.pending)
    assert len(seen) + len(waiting) == cursor.draws
    of_cell = defaultdict(list)
    for cell, counter, example in seen:
        assert (cell, counter) not in waiting
        of_cell[cell].append((counter, example))
    for number, cell in enumerate(mixed.components):
        drawn = of_cell[number]
        counters = sorted(c for c, _ in drawn) + [c for n, c in waiting if n == number]
        assert sorted(counters) == list(range(cursor.counters[number])), "no draw lost or doubled"
        for epoch in range(max((c for c, _ in drawn), default=0) // cell.num_examples + 1):
            inside = [e for c, e in drawn if c // cell.num_examples == epoch]
            assert len(inside) == len(set(inside)), "an example twice in one epoch"
            complete = sum(c // cell.num_examples == epoch for c in counters) == cell.num_examples
            left = sum(n == number and c // cell.num_examples == epoch for n, c in waiting)
            if complete and not left:
                assert sorted(inside) == list(range(cell.num_examples))


@pytest.mark.parametrize("number", [1, 2])
def test_one_or_two_examples_are_enough(number):
    plan = planner(mixture(open_stream([FakeSlice("l", [5] * number)], Plain())))
    seen = placed(plan.plan(Cursor()))
    counts = Counter(example for _, _, example in seen)
    assert set(counts) == set(range(number))
    assert max(counts.values()) - min(counts.values()) <= 2


@given(cut=st.integers(1, 8), seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_a_cursor_is_all_the_state(cut, seed):
    def make():
        streams = (
            open_stream([FakeSlice("a", list(range(1, 30)))], Plain(), share=0.3),
            open_stream(
                [FakeSlice("b", [7] * 50), FakeSlice("c", [3, 9])], Plain(copies=2), share=0.7
            ),
        )
        return planner(mixture(*streams, seed=seed))

    whole = make().steps(Cursor())
    plans = [next(whole) for _ in range(10)]
    resumed = make().steps(plans[cut - 1][0].cursor)
    for expected in plans[cut:]:
        for one, other in zip(expected, next(resumed), strict=True):
            for name in ("components", "counters", "examples"):
                assert np.array_equal(getattr(one.draws, name), getattr(other.draws, name))
            for name in ("rows", "offsets"):
                assert np.array_equal(getattr(one, name), getattr(other, name))
            assert one.cursor == other.cursor


def test_no_draw_waits_for_ever():
    lengths = [31] * 20 + [3] * 200 + [17] * 50
    plan = planner(mixture(open_stream([FakeSlice("l", lengths)], Plain())), rows=6, row_length=32)
    cursor, age = Cursor(), Counter[Draw]()
    for _ in range(200):
        cursor = plan.plan(cursor)[0].cursor
        age = Counter({draw: age[draw] + 1 for draw in cursor.pending})
        assert max(age.values(), default=0) <= 3


def test_tokens_are_shared_as_asked_whatever_the_lengths():
    streams = (
        open_stream([FakeSlice("a", [5] * 300)], Plain(), share=0.25),
        open_stream([FakeSlice("b", [15] * 300)], Plain(copies=2), share=0.75),
    )
    mixed = mixture(*streams)
    plan = planner(mixed, rows=32, micro_rows=8, row_length=64)
    cursor, tokens = Cursor(), Counter[int]()
    for _ in range(60):
        plans = plan.plan(cursor)
        for one in plans:
            owners = np.repeat(one.draws.components, np.diff(one.draws.starts))
            for cell, length in zip(owners.tolist(), one.draws.lengths.tolist(), strict=True):
                tokens[cell] += length
        cursor = plans[0].cursor
    assert tokens[0] / tokens.total() == pytest.approx(0.25, abs=0.01)


def test_languages_are_drawn_by_their_smoothed_sizes():
    parts = [FakeSlice("big", [4] * 8000), FakeSlice("small", [4] * 500)]
    mixed = mixture(open_stream(parts, Plain(), alpha=0.7))
    expected = smoothed_shares(np.array([8000.0, 500.0]), 0.7)
    assert mixed.probabilities == pytest.approx(expected)
    drawn = np.bincount(mixed.draw_components(0, 40_000)) / 40_000
    assert drawn == pytest.approx(expected, abs=0.01)


def test_sources_of_one_language_share_its_probability():
    parts = [
        FakeSlice("en", [4] * 600, source="a"),
        FakeSlice("en", [4] * 200, source="b"),
        FakeSlice("sw", [4] * 200),
    ]
    mixed = mixture(open_stream(parts, Plain(), alpha=0.0))
    assert mixed.probabilities == pytest.approx([0.375, 0.125, 0.5])


def build(mixed, plan):
    return BatchBuilder(
        mixed,
        VOCABULARY,
        micro_rows=plan.micro_rows,
        row_length=plan.shape.row_length,
        num_aux_rows=plan.num_aux_rows,
        target_capacity=plan.target_capacity,
        seed=0,
        stage=0,
    )


def test_rows_hold_each_sequence_once_and_nothing_else():
    mixed = mixture(open_stream([FakeSlice("l", [3, 8, 13, 21, 5])], Plain(copies=2)))
    plan = planner(mixed)
    builder = build(mixed, plan)
    for one in plan.plan(Cursor()):
        batch = builder[one]
        real = batch.rows.sequences >= 0
        assert int(real.sum()) == batch.num_tokens == int(one.draws.lengths.sum())
        assert (batch.rows.ids[~real] == VOCABULARY.pad).all()
        for row, sequences in zip(batch.rows.ids, batch.rows.sequences, strict=True):
            for number in range(int(sequences.max()) + 1):
                tokens = row[sequences == number]
                assert len(set(tokens.tolist())) == 1
                assert len(tokens) == [3, 8, 13, 21, 5][int(tokens[0]) - 10]
        assert batch.num_targets == {"m0": len(batch.target_positions)}
        first = batch.rows.positions.flatten()[batch.markers["m0"]["first"]]
        assert (first == 0).all()
        assert (batch.rows.sequences.flatten()[batch.target_positions] >= 0).all()


def test_auxiliary_rows_come_with_their_main_rows():
    mixed = mixture(open_stream([FakeSlice("l", list(range(2, 20)))], Plain(), WithAux()))
    plan = planner(mixed, rows=8, micro_rows=4)
    builder = build(mixed, plan)
    plans = plan.plan(Cursor())
    for one in plans:
        batch = builder[one]
        assert set(batch.aux_rows) == {"m1"}
        side = batch.aux_rows["m1"]
        # every draw: two main sequences and one side sequence of the same tokens
        main = Counter(batch.rows.ids[batch.rows.sequences >= 0].tolist())
        beside = Counter(side.ids[side.sequences >= 0].tolist())
        assert main == Counter({token: 2 * n for token, n in beside.items()})
        assert len(one.draws.components) > 0


def test_auxiliary_markers_have_an_index_space_of_their_own():
    mixed = mixture(open_stream([FakeSlice("l", list(range(2, 20)))], WithAux()))
    plan = planner(mixed, rows=8, micro_rows=4)
    batch = build(mixed, plan)[plan.plan(Cursor())[0]]
    main, side = batch.markers["m0"]["first"], batch.aux_markers["m0"]["first"]
    assert len(main) == len(side) > 1
    assert (batch.rows.positions.flatten()[main] == 0).all()
    assert torch.equal(
        batch.rows.ids.flatten()[main].sort().values,
        batch.aux_rows["m0"].ids.flatten()[side].sort().values,
    )


def test_two_streams_may_share_an_objective_with_side_rows():
    streams = (
        open_stream([FakeSlice("a", list(range(2, 20)))], WithAux()),
        open_stream([FakeSlice("b", list(range(2, 30)))], WithAux()),
    )
    plan = planner(mixture(*streams), rows=8, micro_rows=4)
    assert plan.aux_groups == {"m0": 1}
    assert len(plan.plan(Cursor())) == 2


def test_an_objective_may_count_markers_instead_of_tokens():
    class Counting(Plain):
        target_marker: ClassVar[str | None] = "first"

    mixed = mixture(open_stream([FakeSlice("l", [9] * 30)], Counting(copies=2)))
    plan = planner(mixed)
    batch = build(mixed, plan)[plan.plan(Cursor())[0]]
    assert batch.num_targets == {"m0": len(batch.markers["m0"]["first"])}


def test_targets_are_padded_to_a_fixed_capacity_and_never_overfilled():
    mixed = mixture(open_stream([FakeSlice("l", [2] * 40)], Plain()))
    plan = planner(mixed, target_capacity=10)
    builder = build(mixed, plan)
    for one in plan.plan(Cursor()):
        batch = builder[one]
        assert len(batch.target_positions) == len(batch.targets) == len(batch.target_weights) == 10
        assert batch.target_weights.sum() == batch.num_targets["m0"] <= 10


def test_once_visits_every_example_once():
    parts = [FakeSlice("a", list(range(1, 33))), FakeSlice("b", [4] * 100)]
    plan = planner(mixture(open_stream(parts, Plain())))
    seen = [row for one in plan.single_pass(50) for row in placed([one])]
    assert Counter(cell for cell, _, _ in seen) == {0: 32, 1: 50}
    assert len(set(seen)) == len(seen)


def test_the_same_example_is_masked_anew_each_time_it_is_drawn():
    mixed = mixture(open_stream([FakeSlice("l", [5])], Plain()))
    plan = planner(mixed)
    batch = build(mixed, plan)[plan.plan(Cursor())[0]]
    assert len(batch.targets) > 5
    assert len(set(batch.targets.tolist())) > 5, "one example, drawn again and again"


def test_a_failing_example_is_named():
    class Broken(Plain):
        @override
        def build(self, example, vocabulary, rng):
            raise IndexError("out of range")

    mixed = mixture(open_stream([FakeSlice("l", [3])], Broken()))
    plan = planner(mixed)
    with pytest.raises(ValueError, match="fake/l, row 0: out of range"):
        build(mixed, plan)[plan.plan(Cursor())[0]]
