"""Plans against the slow and obvious ones: draws, places, cursors, auxiliary rows, one pass."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from isoglot.batching.planner import BatchConfig, Planner, count_draws
from isoglot.types import Cursor
from tests.batching import naive
from tests.batching.fakes import FakeSlice, Plain, WithAux, mixture, open_stream
from tests.batching.test_planner import placed, planner


@given(
    seed=st.integers(0, 2**32),
    stage=st.integers(0, 3),
    capacity=st.sampled_from([None, 6, 40]),
    lookahead=st.sampled_from([0.0, 0.1, 1.5]),
)
@settings(max_examples=20, deadline=None)
def test_plans_are_the_slow_and_obvious_ones(seed, stage, capacity, lookahead):
    """Draw by draw in Python: the same draws, rows, offsets and cursors for four steps."""
    streams = (
        open_stream([FakeSlice("a", list(range(1, 30))), FakeSlice("b", [7] * 9)], Plain(copies=2)),
        open_stream([FakeSlice("c", [3, 9, 28])], Plain(), WithAux(), share=0.4),
    )
    mixed = mixture(*streams, seed=seed, stage=stage)
    shape = BatchConfig(rows=6, micro_rows=3, row_length=32, lookahead=lookahead)
    plan = Planner(mixed, shape, target_capacity=capacity)
    assert list(plan.aux_groups) == list(plan.num_aux_rows) == ["m1"]
    cursor = Cursor()
    for _ in range(4):
        expected, following = naive.plan(
            mixed,
            shape,
            cursor,
            aux_rows=plan.num_aux_rows,
            target_capacity=capacity,
            seed=seed,
            stage=stage,
        )
        plans = plan.plan(cursor)
        assert [one.cursor for one in plans] == [following] * 2
        for one, draws in zip(plans, expected, strict=True):
            assert one.draws.components.tolist() == [draw.component for draw in draws]
            assert one.draws.counters.tolist() == [draw.counter for draw in draws]
            assert one.draws.examples.tolist() == [draw.example for draw in draws]
            places = [place for draw in draws for place in draw.places]
            assert list(zip(one.rows.tolist(), one.offsets.tolist(), strict=True)) == places
        cursor = following


@given(
    st.lists(st.integers(0, 4), max_size=40), st.lists(st.integers(0, 99), min_size=5, max_size=5)
)
@settings(max_examples=40, deadline=None)
def test_draws_are_counted_one_after_the_other(components, counters):
    taken, expected = list(counters), []
    for component in components:
        expected.append(taken[component])
        taken[component] += 1
    found = count_draws(np.array(components, np.int64), np.array(counters, np.int64))
    assert found.tolist() == expected


@pytest.mark.parametrize(("micro_rows", "share"), [(4, 1.0), (16, 1.0), (16, 0.25), (1, 0.01)])
def test_auxiliary_rows_hold_what_is_drawn_and_an_eighth_more(micro_rows, share):
    """`WithAux` has one main and one auxiliary sequence of a text: as many tokens in both."""
    one = open_stream([FakeSlice("a", [3, 8, 13])], WithAux(), share=share)
    other = open_stream([FakeSlice("b", [6])], Plain(), share=1 - share + 1e-9)
    plan = planner(mixture(one, other), rows=16, micro_rows=micro_rows)
    assert plan.num_aux_rows == {"m0": 1 + int(1.125 * micro_rows * share / (1 + 1e-9))}
    # of two copies in the main rows and one beside them
    both = planner(mixture(open_stream([FakeSlice("a", [3, 8])], Plain(), WithAux())), rows=16)
    assert both.num_aux_rows == {"m1": 1 + int(1.125 * 2 / 2)}


def test_auxiliary_rows_are_for_the_languages_that_are_read():
    """An objective of one of two languages gets the rows of its share of the draws."""

    class Swahili(WithAux):
        @override
        def accepts_language(self, language: str) -> bool:
            return language == "sw"

    parts = [FakeSlice("en", [8] * 30), FakeSlice("sw", [8] * 10)]
    mixed = mixture(open_stream([*parts], Plain(), Swahili(), alpha=1.0))
    plan = planner(mixed, rows=64, micro_rows=64)
    # a quarter of the draws; mixed lengths count both objectives' main sequences
    assert plan.num_aux_rows == {"m1": 1 + int(1.125 * 64 * 0.25 * 8 / 16)}
    assert plan._share_of(mixed.components[1:], mixed.components) == pytest.approx(0.25)


def test_a_pass_is_planned_within_its_limits():
    """Longest first; no more draws are looked up than half a step has tokens."""
    parts = [FakeSlice("a", list(range(1, 33))), FakeSlice("b", [4] * 40)]
    mixed = mixture(open_stream([*parts], Plain()))
    plan = planner(mixed)
    asked: list[int] = []
    look_up = plan._lookup
    plan._lookup = lambda *drawn: asked.append(len(drawn[0])) or look_up(*drawn)  # type: ignore
    plans = list(plan.single_pass(1000))
    assert max(asked) == min(72, 4 * 32 // 2)
    assert sum(len(one.draws.components) for one in plans) == 72
    assert all(len(one.draws.components) for one in plans)
    first = plans[0].draws.tokens.max()
    assert first == max(one.draws.tokens.max() for one in plans[:2])
    counts = Counter(component for component, _, _ in placed(plan.single_pass(3)))
    assert counts == {0: 3, 1: 3}
