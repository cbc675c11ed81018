"""The linear planner makes the plans of the quadratic one, which is kept here, draw by draw."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from isoglot.batching.draws import PendingDraws
from isoglot.batching.loader import one_ahead
from isoglot.batching.padded import PaddedPlanner
from isoglot.batching.planner import BatchConfig, Planner
from isoglot.types import Cursor, Draw
from tests.batching.fakes import FakeSlice, Plain, WithAux, mixture, open_stream


def place(first, last, groups, lengths, room, row_of, offset_of, row_length) -> bool:
    """Place the sequences first .. last into a micro-batch (groups, rows), all or none."""
    placed = first
    while placed < last:
        free = room[groups[placed]]
        fitting = [row for row in range(len(free)) if lengths[placed] <= free[row]]
        if not fitting:
            break
        row = min(fitting, key=lambda row: (free[row], row))
        offset_of[placed] = row_length - free[row]
        free[row] -= lengths[placed]
        row_of[placed] = row
        placed += 1
    if placed == last:
        return True
    for s in range(first, placed):
        room[groups[s]][row_of[s]] += lengths[s]
        row_of[s] = -1
    return False


def quadratic_pack(order, starts, groups, lengths, targets, room, target_room, row_length):
    """Every draw looks at every micro-batch, the one with the most free tokens first."""
    micro_of = np.full(len(starts) - 1, -1)
    row_of, offset_of = np.full(len(lengths), -1), np.zeros(len(lengths), np.int64)
    free = [int(one[0].sum()) for one in room]
    for draw in order:
        first, last = starts[draw], starts[draw + 1]
        for micro in sorted(range(len(room)), key=lambda m: (-free[m], m)):
            if targets[draw] <= target_room[micro] and place(
                first, last, groups, lengths, room[micro], row_of, offset_of, row_length
            ):
                micro_of[draw] = micro
                target_room[micro] -= int(targets[draw])
                free[micro] -= sum(lengths[s] for s in range(first, last) if groups[s] == 0)
                break
    return micro_of, row_of, offset_of


class OldPlan(NamedTuple):
    draws: list[tuple[int, int, int, float]]
    lengths: list[int]
    rows: list[int]
    offsets: list[int]


def old_step(planner: Planner, cursor: Cursor) -> tuple[list[OldPlan], Cursor]:
    """A step by look-ups of 7 draws at a time, a sort by two keys, and a pass for each plan."""
    look_up, mixed, shape = planner._lookup, planner.mixture, planner.shape
    pending = np.array(list(cursor.pending), np.int64).reshape(-1, 2)
    pool = look_up(pending[:, 0].copy(), pending[:, 1].copy())
    counters = np.zeros(len(mixed.components), np.int64)
    counters[: len(cursor.counters)] = cursor.counters
    drawn = cursor.draws
    while pool.tokens.sum() < planner._wanted_tokens(cursor.step):
        for component in mixed.draw_components(drawn, 7):
            if pool.tokens.sum() >= planner._wanted_tokens(cursor.step):
                break
            pool = pool.join(look_up(np.array([component]), counters[[component]]))
            counters[component] += 1
            drawn += 1
    is_new = np.arange(len(pool.tokens)) >= len(cursor.pending)
    order = np.lexsort([-pool.tokens, is_new])
    most = max([planner.micro_rows, *planner.num_aux_rows.values()])
    room = np.zeros((planner.num_micro(0), 1 + len(planner.aux_groups), most), np.int64)
    room[:, 0, : planner.micro_rows] = shape.row_length
    for name, group in planner.aux_groups.items():
        room[:, group, : planner.num_aux_rows[name]] = shape.row_length
    limit = 2**62 if planner.target_capacity is None else planner.target_capacity
    micro_of, row_of, offset_of = quadratic_pack(
        order,
        pool.starts,
        pool.groups,
        pool.lengths,
        pool.targets,
        room,
        [limit] * planner.num_micro(0),
        shape.row_length,
    )
    owner = np.repeat(micro_of, np.diff(pool.starts))
    plans = []
    for number in range(planner.num_micro(0)):
        own, inside = np.flatnonzero(micro_of == number), np.flatnonzero(owner == number)
        plans.append(
            OldPlan(
                listed(pool, own),
                pool.lengths[inside].tolist(),
                row_of[inside].tolist(),
                offset_of[inside].tolist(),
            )
        )
    left = [Draw(*one[:2]) for one in listed(pool, np.flatnonzero(micro_of < 0))]
    following = Cursor(step=cursor.step + 1, counters=tuple(counters.tolist()), pending=tuple(left))
    return plans, following


def listed(pool: Any, draws: Any) -> list[tuple[int, int, int, float]]:
    columns = (pool.components, pool.counters, pool.examples, pool.uniforms)
    return list(zip(*(column[draws].tolist() for column in columns), strict=True))


def as_old(plan) -> OldPlan:
    everything = np.arange(len(plan.draws.components))
    draws = listed(plan.draws, everything)
    assert plan.draws.starts[0] == 0
    return OldPlan(draws, plan.draws.lengths.tolist(), plan.rows.tolist(), plan.offsets.tolist())


OBJECTIVES = [
    (Plain(),),
    (Plain(copies=2),),
    (Plain(copies=3),),
    (WithAux(),),
    (Plain(), WithAux()),
    (WithAux(copies=3), Plain(copies=2)),
]


@st.composite
def mixtures(draw):
    streams = []
    for _ in range(draw(st.integers(1, 3))):
        parts = draw(
            st.lists(st.lists(st.integers(1, 32), min_size=1, max_size=30), min_size=1, max_size=3)
        )
        slices = [FakeSlice(f"l{number}", sizes) for number, sizes in enumerate(parts)]
        streams.append(
            open_stream(
                slices,
                *draw(st.sampled_from(OBJECTIVES)),
                share=draw(st.sampled_from([0.2, 1.0])),
                sampling=draw(st.sampled_from(["languages", "epochs"])),
            )
        )
    return mixture(*streams, seed=draw(st.integers(0, 99)), stage=draw(st.integers(0, 2)))


@given(
    mixed=mixtures(),
    micro=st.tuples(st.integers(1, 9), st.integers(5, 7)),
    capacity=st.sampled_from([None, 4, 12, 60]),
    lookahead=st.sampled_from([0.0, 0.1, 1.5]),
    world=st.integers(1, 4),
)
@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_plans_are_those_of_the_quadratic_planner(mixed, micro, capacity, lookahead, world):
    number, rows = micro
    shape = BatchConfig(rows=number * rows, micro_rows=rows, row_length=32, lookahead=lookahead)
    planner = Planner(mixed, shape, target_capacity=capacity)
    fresh = Planner(mixed, shape, target_capacity=capacity)
    cursor = Cursor()
    for step in range(3):
        expected, following = old_step(planner, cursor)
        if not any(one.draws for one in expected):
            return
        plans = planner.plan(cursor)
        assert list(map(as_old, plans)) == expected
        assert {plan.cursor for plan in plans} == {following}
        if step == 2 and number >= world:
            for rank in range(world):
                own = fresh.plan(cursor, rank=rank, world=world)
                assert list(map(as_old, own)) == expected[rank::world]
                assert own[0].cursor == following
        cursor = plans[0].cursor


def test_a_step_of_many_micro_batches():
    """Some hundred micro-batches, of which many are full when the last draws come."""
    rng = np.random.default_rng(0)
    sizes = np.minimum(rng.lognormal(2.2, 0.7, 400).astype(int) + 1, 32).tolist()
    for objectives, capacity in (((Plain(),), 9), ((Plain(), WithAux()), None)):
        mixed = mixture(open_stream([FakeSlice("a", sizes)], *objectives))
        shape = BatchConfig(rows=300, micro_rows=3, row_length=32)
        planner = Planner(mixed, shape, target_capacity=capacity)
        cursor = Cursor()
        for _ in range(2):
            expected, following = old_step(planner, cursor)
            plans = planner.plan(cursor)
            assert list(map(as_old, plans)) == expected
            cursor = plans[0].cursor
            assert cursor == following
            assert cursor.pending


def old_buckets(order, sizes, budget) -> list[list[int]]:
    """Cut draws in this order into micro-batches of padded rows."""
    buckets: list[list[int]] = []
    sources = longest = targets = longest_target = 0
    for draw in order:
        size = sizes[draw].tolist()
        sources, longest = sources + size[0], max(longest, size[1])
        targets, longest_target = targets + size[2], max(longest_target, size[3])
        if not buckets or sources * longest + targets * longest_target > budget:
            buckets.append([])
            sources, longest, targets, longest_target = size
        buckets[-1].append(int(draw))
    return buckets


@given(
    sizes=st.lists(st.integers(1, 32), min_size=1, max_size=60),
    seed=st.integers(0, 99),
    number=st.integers(1, 6),
)
@settings(max_examples=40, deadline=None)
def test_padded_plans_are_those_of_lists(sizes, seed, number):
    mixed = mixture(
        open_stream([FakeSlice("a", sizes)], Plain()),
        open_stream([FakeSlice("b", sizes[::-1])], Plain(copies=2)),
        seed=seed,
    )
    shape = BatchConfig(rows=4 * number, micro_rows=4, row_length=64)
    planner = PaddedPlanner(mixed, shape, target_capacity=None)
    cursor = Cursor()
    for _ in range(3):
        known = planner._look_up(cursor)
        short = planner._wanted_tokens(cursor.step) - known.pending.tokens.sum()
        new = int(np.searchsorted(np.cumsum(known.following.tokens), short)) + 1
        pool = known.pending.join(known.following[: new if short > 0 else 0])
        of = planner._sizes(pool)
        order = np.argsort(-of[:, [1, 3]].max(axis=1), kind="stable")
        buckets = old_buckets(order, of, planner._budget)
        if len(buckets) > 1 and 0 in buckets[-1]:
            buckets = old_buckets(order[::-1], of, planner._budget)
        chosen = (sorted(buckets[:-1], key=min) + buckets[-1:])[:number]
        expected = [listed(pool, np.sort(np.array(one, np.int64))) for one in chosen]
        plans = planner.plan(cursor)
        assert [as_old(plan).draws for plan in plans][: len(chosen)] == expected
        assert not any(len(plan.draws.components) for plan in plans[len(chosen) :])
        cursor = plans[0].cursor


def test_pending_draws_are_a_tuple_of_draws():
    pending = PendingDraws(np.array([0, 2]), np.array([5, 7]))
    assert pending == (Draw(0, 5), Draw(2, 7)) == pending
    assert pending == PendingDraws(np.array([0, 2]), np.array([5, 7]))
    assert pending != (Draw(0, 5),)
    assert hash(pending) == hash((Draw(0, 5), Draw(2, 7)))
    assert (len(pending), pending[1], pending[:1]) == (2, Draw(2, 7), [Draw(0, 5)])
    assert repr(pending) == repr((Draw(0, 5), Draw(2, 7)))
    assert Cursor(pending=pending) == Cursor(pending=(Draw(0, 5), Draw(2, 7)))


def test_the_next_item_is_made_ahead_and_errors_are_passed_on():
    made = []

    def items():
        for number in range(3):
            made.append(number)
            yield number
        raise CannotPlanError

    found = one_ahead(items())
    assert next(found) == 0
    assert next(found) == 1
    assert made[:2] == [0, 1]
    assert next(found) == 2
    with pytest.raises(CannotPlanError):
        next(found)
    again = one_ahead(items())
    next(again)
    again.close()  # type: ignore[attr-defined]


class CannotPlanError(Exception):
    pass
