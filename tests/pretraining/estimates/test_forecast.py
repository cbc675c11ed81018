"""What a run says about its length before and after its first steps."""

import io
import math
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from isoglot.batching.loader import Loader, open_streams
from isoglot.pretraining.config import objectives_of
from isoglot.pretraining.estimates import forecast
from isoglot.pretraining.estimates.forecast import (
    SpeedWriter,
    StreamPasses,
    count_passes,
    describe_passes,
    many_passes_note,
)
from isoglot.types import Cursor
from tests.pretraining import driver


def test_passes_are_the_draws_of_all_steps_divided_by_the_examples(corpus, monkeypatch):
    # on a busy machine fewer steps would be planned, and the estimate would be less exact
    monkeypatch.setattr(forecast, "_PLANNING_SECONDS", math.inf)
    config = driver.config()
    stage, steps = config.stages[1], 150
    streams = open_streams(corpus, stage.streams, objectives_of(config), row_length=96)
    planner = Loader(corpus, streams, config.batch, stage=1).planner
    found = count_passes(planner, list(stage.streams), stage=1, steps=steps)
    assert [one.stream for one in found] == ["text", "parallel"]
    cursor = Cursor()
    for _ in range(steps):
        cursor = planner.plan(cursor)[0].cursor
    for number, one in enumerate(found):
        components = planner.mixture.components
        own = [place for place, of in enumerate(components) if of.stream == number]
        examples = sum(components[place].num_examples for place in own)
        assert one.examples == examples
        drawn = sum(cursor.counters[place] for place in own)
        assert one.passes == pytest.approx(drawn / examples, rel=0.1)
        highest = max(cursor.counters[place] / components[place].num_examples for place in own)
        assert one.most_passes == pytest.approx(highest, rel=0.2)


def test_planning_stops_after_its_time_and_the_passes_are_of_all_steps(corpus, monkeypatch):
    monkeypatch.setattr(forecast, "_PLANNING_SECONDS", -1.0)
    config = driver.config()
    stage = config.stages[1]
    streams = open_streams(corpus, stage.streams, objectives_of(config), row_length=96)
    planner = Loader(corpus, streams, config.batch, stage=1).planner
    short, long = (
        count_passes(planner, list(stage.streams), stage=1, steps=steps) for steps in (10, 1000)
    )
    one_step = planner.plan(Cursor())[0].cursor
    drawn = sum(one_step.counters) - len(one_step.pending)
    assert sum(one.passes * one.examples for one in short) == pytest.approx(10 * drawn)
    assert [one.passes for one in long] == pytest.approx([100 * one.passes for one in short])


def passes(number, most=None, stream="text"):
    return StreamPasses(
        stage=0,
        stream=stream,
        examples=1200,
        passes=number,
        most_read="news/sw",
        most_passes=most or number,
    )


@pytest.mark.parametrize("part_of_plan", [False, True])
def test_a_plan_that_has_named_the_passes_is_not_warned_of_them(part_of_plan, monkeypatch):
    monkeypatch.setattr(forecast, "count_passes", lambda *_, **__: [passes(26.3)])
    warned: list[str] = []
    context: Any = SimpleNamespace(
        config=SimpleNamespace(stages=[SimpleNamespace(epochs=None, streams={})]),
        num_steps=[9],
        console=Console(quiet=True),
        part_of_plan=part_of_plan,
        warn=lambda note, kind: warned.append(note),
    )
    planner: Any = None
    forecast.say_length(context, planner, 0)
    assert bool(warned) != part_of_plan


def test_a_stream_that_is_read_very_often_is_a_warning():
    assert many_passes_note([passes(9.9)]) is None
    note = many_passes_note([passes(26.3)])
    assert note is not None
    assert "text (1,200 examples) will be read 26 times" in note
    assert "stages.0.steps" in note
    both = many_passes_note([passes(73.0), passes(197.0, stream="parallel")])
    assert both is not None
    assert both.startswith(
        "text (1,200 examples) will be read 73 times and parallel (1,200 examples) will be read "
        "197 times: more than 10 passes"
    )


def test_the_language_that_is_read_most_is_named_where_it_differs():
    assert describe_passes([passes(3.21)], 60_000) == "stage 1: 60,000 steps, text read 3.2 times"
    assert describe_passes([passes(3.21, 40.0)], 1).endswith(
        "stage 1: 1 step, text read 3.2 times (most: news/sw 40 times)"
    )


def test_a_short_run_reads_a_stream_less_than_a_tenth_of_a_time():
    said = describe_passes([passes(0.02, 0.04)], 3)
    assert said == "stage 1: 3 steps, text read less than 0.1 times"


def test_the_time_of_a_stage_is_said_once_without_its_first_steps():
    shown = io.StringIO()
    writer = SpeedWriter(Console(file=shown, width=40), [100, 1000])  # a log keeps lines whole
    for step in range(1, 101):
        writer.write({"step": step, "stage": 0, "seconds": 9.0 if step <= 3 else 0.5})
    writer.write({"step": 100, "valid/mlm/mean/perplexity": 1.0})
    for step in range(101, 120):
        writer.write({"step": step, "stage": 1, "seconds": 20.0})
    rest = "validation and checkpoints apart"
    assert shown.getvalue().splitlines() == [
        f"stage 1: 0.5 s a step, about 50 s for its 100 steps; {rest}",
        f"stage 2: 20 s a step, about 5 h 33 min for its 1,000 steps; {rest}",
    ]
