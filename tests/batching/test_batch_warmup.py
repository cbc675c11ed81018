"""Batch-size warm-up: rows of each step by hand, plans of a fixed size, any processes, resumed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from isoglot.batching.loader import LoaderConfig
from isoglot.batching.padded import PaddedPlanner
from isoglot.batching.planner import BatchConfig, Planner
from isoglot.batching.schedules import BatchWarmup, StageSchedules
from isoglot.errors import RecipeError
from isoglot.explore.stage_batches import open_stage
from isoglot.objectives.mlm import MLM
from isoglot.pretraining.config import StageConfig
from isoglot.pretraining.estimates.forecast import count_passes
from isoglot.pretraining.run import pretrain
from isoglot.pretraining.stage_data import num_steps
from isoglot.recipe import load_recipe
from isoglot.types import Cursor
from tests.batching.fakes import FakeSlice, Plain, mixture, open_stream
from tests.batching.test_loader import STREAMS, loader, same, take
from tests.pretraining import driver
from tests.pretraining.test_resume import assert_same, train

RISING = BatchWarmup(start_rows=4, steps=5)
"""To 16 rows: 4 in two steps, 8 in two, 12 in one, then 16."""


def rows_by_hand(warmup: BatchWarmup, rows: int, step: int) -> int:
    """Rows grow by an increment as soon as that part of the warm-up's steps is over."""
    increment = warmup.increment or warmup.start_rows
    sizes = list(range(warmup.start_rows, rows + 1, increment))
    number = 0
    while number < len(sizes) - 1 and step * (len(sizes) - 1) >= (number + 1) * warmup.steps:
        number += 1
    return sizes[number]


def test_the_rows_of_every_step() -> None:
    found = [RISING.at(step, 16) for step in range(8)]
    assert found == [4, 4, 8, 8, 12, 16, 16, 16]


@given(
    start=st.integers(1, 9),
    increment=st.integers(1, 9),
    number=st.integers(0, 9),
    steps=st.integers(1, 40),
    wanted=st.integers(1, 60),
)
@settings(max_examples=100, deadline=None)
def test_rows_and_their_sums_are_those_by_hand(
    start: int, increment: int, number: int, steps: int, wanted: int
) -> None:
    warmup, rows = (
        BatchWarmup(start_rows=start, increment=increment, steps=steps),
        start + number * increment,
    )
    warmup.check(rows)
    expected = [rows_by_hand(warmup, rows, step) for step in range(wanted)]
    assert [warmup.at(step, rows) for step in range(wanted)] == expected
    assert warmup.total(wanted, rows) == sum(expected)
    # the first number of steps that holds as many rows, to half a step beyond the warm-up
    found = warmup.num_steps(sum(expected), rows)
    assert abs(warmup.total(found, rows) - sum(expected)) <= rows / 2 or found == wanted


@pytest.mark.parametrize("kind", [Planner, PaddedPlanner])
def test_a_plan_is_that_of_a_planner_with_as_many_rows(kind: type[Planner]) -> None:
    lengths = np.random.default_rng(0).integers(1, 30, 300).tolist()
    mixed = mixture(open_stream([FakeSlice("a", lengths), FakeSlice("b", lengths)], Plain()))
    shape = BatchConfig(rows=16, micro_rows=4, row_length=32)
    running, cursor = kind(mixed, shape, target_capacity=None, warmup=RISING), Cursor()
    drawn = 0
    for step in range(8):
        rows = rows_by_hand(RISING, 16, step)
        fixed = kind(mixed, replace(shape, rows=rows), target_capacity=None)
        plans, expected = running.plan(cursor), fixed.plan(cursor)
        assert len(plans) == rows // 4 == running.num_micro(step)
        for one, other in zip(plans, expected, strict=True):
            for name in ("components", "counters", "examples"):
                assert np.array_equal(getattr(one.draws, name), getattr(other.draws, name))
            assert np.array_equal(one.rows, other.rows)
            assert one.cursor == other.cursor
        resumed = kind(mixed, shape, target_capacity=None, warmup=RISING)
        assert resumed.plan(cursor)[0].cursor == plans[0].cursor
        cursor = plans[0].cursor
        drawn += sum(len(plan.draws.components) for plan in plans)
        assert drawn + len(cursor.pending) == cursor.draws, "no draw is lost or taken twice"
    assert running.num_rows(8) == 4 + 4 + 8 + 8 + 12 + 3 * 16


def test_processes_workers_and_resuming_change_nothing(corpus: Any) -> None:
    of_stage = StageSchedules(steps=8, batch_warmup=BatchWarmup(start_rows=8, steps=3))

    def steps(**settings: Any) -> Any:
        return loader(corpus, schedules=of_stage, **settings).steps

    alone = take(steps()(Cursor()), 6)
    assert [len(batches) for batches in alone] == [2, 2, 2, 4, 4, 4]
    resumed = take(steps(workers=LoaderConfig(num_workers=2))(alone[1][0].cursor), 4)
    for expected, batches in zip(alone[2:], resumed, strict=True):
        assert all(same(a, b) for a, b in zip(expected, batches, strict=True))
    for rank in (0, 1):
        for expected, batches in zip(
            alone, take(steps(rank=rank, world=2)(Cursor()), 6), strict=True
        ):
            assert all(same(a, b) for a, b in zip(expected[rank::2], batches, strict=True))


def warmed(warmup: BatchWarmup | None) -> Any:
    """The plain run, of four rows a step, with a warm-up in its first stage."""
    config = driver.config()
    first = replace(config.stages[0], batch_warmup=warmup)
    return replace(config, stages=(first, config.stages[1]))


def test_a_resumed_run_is_exact(corpus: Any, tmp_path: Any) -> None:
    config, tokens = warmed(BatchWarmup(start_rows=1, steps=6)), list[int]()
    pretrain(
        config,
        corpus,
        tmp_path / "whole",
        console=Console(quiet=True),
        on_step=lambda result: tokens.append(result.num_tokens),
    )
    train(config, corpus, tmp_path / "run", resume=False, stop_at=4)
    train(config, corpus, tmp_path / "run", resume=True)
    assert_same(tmp_path / "run", tmp_path / "whole")
    rows = [1, 1, 2, 2, 3, 3, 4, 4, 4, 4, *[4] * 8]
    filled = [n / (96 * number) for n, number in zip(tokens, rows, strict=True)]
    assert all(0.6 < one <= 1 for one in filled), "each step has the tokens of its rows"


def test_the_setting_is_part_of_the_fingerprint_only_where_it_is_used() -> None:
    found = {
        warmed(one).fingerprint()
        for one in (None, BatchWarmup(start_rows=1, steps=6), BatchWarmup(start_rows=2, steps=6))
    }
    assert len(found) == 3
    assert warmed(None).fingerprint() == driver.config().fingerprint()
    assert "batch_warmup" not in repr(driver.config().stages)


def test_a_warm_up_that_leads_elsewhere_is_refused(corpus: Any) -> None:
    with pytest.raises(RecipeError, match=r"3 rows and 3 more at a time do not lead to batch.rows"):
        warmed(BatchWarmup(start_rows=3, steps=6))
    with pytest.raises(RecipeError, match=r"8 rows and 8 more"):
        warmed(BatchWarmup(start_rows=8, steps=6))
    uneven = StageSchedules(batch_warmup=BatchWarmup(start_rows=4, increment=6, steps=2))
    with pytest.raises(RecipeError, match=r"multiples of batch\.micro_rows × processes = 4"):
        loader(corpus, schedules=uneven)


def test_rows_at_a_time_divide_every_step(corpus: Any) -> None:
    assert warmed(BatchWarmup(start_rows=2, steps=6)).row_unit == 2
    recipe = load_recipe(
        "tiny",
        [
            "batch={rows: 36, micro_rows: auto}",
            "stages.0.batch_warmup={start_rows: 12, increment: 8, steps: 4}",
        ],
    )
    assert recipe.row_unit == 4
    opened = open_stage(recipe, corpus)
    assert (opened.micro_batches(1), opened.micro_batches(5)) == (3, 9)


def test_epochs_and_passes_count_the_smaller_steps(corpus: Any) -> None:
    shape = BatchConfig(rows=4, micro_rows=2, row_length=96)
    stage = StageConfig(epochs=2.0, streams={"text": STREAMS["text"]})
    warm = replace(stage, batch_warmup=BatchWarmup(start_rows=2, steps=20))

    def steps(of: StageConfig) -> int:
        return num_steps(of, corpus, {"mlm": MLM()}, shape, seed=0, number=0)

    assert steps(warm) == steps(stage) + 10, "20 steps with half of the rows"
    (whole,) = count_passes(
        loader(corpus, streams=stage.streams, shape=shape).planner,
        ["text"],
        stage=0,
        steps=steps(stage),
    )
    (found,) = count_passes(
        loader(
            corpus, streams=stage.streams, shape=shape, schedules=warm.schedules(steps(warm))
        ).planner,
        ["text"],
        stage=0,
        steps=steps(warm),
    )
    assert found.passes == pytest.approx(whole.passes, rel=0.1)
