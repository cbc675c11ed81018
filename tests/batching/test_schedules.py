"""What changes from step to step: each number by hand, on any processes and workers, resumed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from isoglot.batching.counter_rng import key_of, uniform
from isoglot.batching.loader import LoaderConfig
from isoglot.batching.mixture import Mixture
from isoglot.batching.planner import BatchConfig, Planner
from isoglot.batching.schedules import MaskingRate, StageSchedules
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.errors import RecipeError
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from isoglot.pretraining.config import StageConfig, objectives_of
from isoglot.pretraining.estimates.memory_estimate import estimate_memory
from isoglot.pretraining.run import pretrain
from isoglot.types import IGNORE, Cursor
from tests.batching.fakes import FakeSlice, Plain, open_stream
from tests.batching.test_loader import STREAMS, loader, same, take
from tests.pretraining import driver
from tests.pretraining.test_resume import assert_same, train

STEPS = 5
FALLING = StageSchedules(steps=STEPS, masking_rate=MaskingRate(start=0.3, end=0.15))


def by_hand(start: str, end: str, step: int, steps: int) -> float:
    """The rate as a fraction: equal parts of the way from one rate to the other."""
    first, last = Fraction(start), Fraction(end)
    return float(first + (last - first) / (steps - 1) * step)


@pytest.mark.parametrize("pad_targets", [False, True])
def test_each_sequence_has_the_masked_tokens_of_its_step(corpus: Any, pad_targets: bool) -> None:
    found = loader(corpus, schedules=FALLING, pad_targets=pad_targets)
    cursor, shares = Cursor(), list[float]()
    for step in range(STEPS):
        plans = found.planner.plan(cursor)
        cursor, rate = plans[0].cursor, by_hand("0.3", "0.15", step, STEPS)
        masked = total = 0
        for plan in plans:
            for one in found.builder.build(plan)[1]:
                targets = int((one.sequence.targets != IGNORE).sum())
                special = 4 if one.name == "tlm" else 2
                length = len(one.sequence) - special
                # halves may be rounded either way
                assert abs(targets - max(1, rate * length)) < 0.5 + 1e-9, (step, one.name, length)
                masked, total = masked + targets, total + length
        shares.append(masked / total)
    assert shares == pytest.approx([0.3, 0.2625, 0.225, 0.1875, 0.15], abs=0.02)


def test_processes_workers_and_resuming_change_nothing(corpus: Any) -> None:
    alone = take(loader(corpus, schedules=FALLING).steps(Cursor()), STEPS)
    cursor = alone[1][0].cursor
    resumed = take(
        loader(corpus, schedules=FALLING, workers=LoaderConfig(num_workers=2)).steps(cursor), 3
    )
    for expected, batches in zip(alone[2:], resumed, strict=True):
        assert all(same(a, b) for a, b in zip(expected, batches, strict=True))
    for rank in (0, 1):
        steps = take(loader(corpus, schedules=FALLING, rank=rank, world=2).steps(Cursor()), STEPS)
        for expected, batches in zip(alone, steps, strict=True):
            assert all(same(a, b) for a, b in zip(expected[rank::2], batches, strict=True))


def test_one_rate_throughout_is_that_rate_of_the_objective(corpus: Any) -> None:
    constant = StageSchedules(steps=STEPS, masking_rate=MaskingRate(start=0.15))
    plain = take(loader(corpus).steps(Cursor()), 2)
    for expected, found in zip(
        plain, take(loader(corpus, schedules=constant).steps(Cursor()), 2), strict=True
    ):
        assert all(same(a, b) for a, b in zip(expected, found, strict=True))


def annealed(steps: int) -> Mixture:
    """Two languages of 900 and 100 examples of 4 tokens, alpha from 1 to 0."""
    slices = [FakeSlice("en", [4] * 900), FakeSlice("sw", [4] * 100)]
    stream = open_stream(slices, Plain(), alpha=1.0, end_alpha=0.0)
    return Mixture((stream,), seed=3, stage=1, steps=steps)


def test_each_draw_has_the_alpha_of_its_step() -> None:
    shape, steps = BatchConfig(rows=64, micro_rows=16, row_length=32), 6
    running, cursor, shares = Planner(annealed(steps), shape, target_capacity=None), Cursor(), []
    counters = np.zeros(2, np.int64)
    for step in range(steps):
        following = running.plan(cursor)[0].cursor
        alpha = float(1 - Fraction(step, steps - 1))
        swahili = 100**alpha / (900**alpha + 100**alpha)
        points = uniform(key_of(3, 1, "cells"), np.arange(cursor.draws, following.draws))
        drawn = np.array([sum(points < 1 - swahili), sum(points >= 1 - swahili)])
        counters += drawn
        assert following.counters == tuple(counters.tolist()), step
        shares.append(float(drawn[1] / drawn.sum()))
        fresh = Planner(annealed(steps), shape, target_capacity=None)
        assert fresh.plan(cursor)[0].cursor == following, "a resumed planner draws the same"
        cursor = following
    assert shares[0] < 0.2 < 0.4 < shares[-1]


def test_annealed_batches_are_the_same_on_any_processes_and_workers(corpus: Any) -> None:
    streams = {name: replace(one, alpha=1.0, end_alpha=-1.0) for name, one in STREAMS.items()}
    of_stage = StageSchedules(steps=STEPS)

    def steps(**settings: Any) -> Any:
        return loader(corpus, streams=streams, schedules=of_stage, **settings).steps

    alone = take(steps()(Cursor()), STEPS)
    resumed = take(steps(workers=LoaderConfig(num_workers=2))(alone[1][0].cursor), STEPS - 2)
    for expected, batches in zip(alone[2:], resumed, strict=True):
        assert all(same(a, b) for a, b in zip(expected, batches, strict=True))
    for rank in (0, 1):
        for expected, batches in zip(
            alone, take(steps(rank=rank, world=2)(Cursor()), STEPS), strict=True
        ):
            assert all(same(a, b) for a, b in zip(expected[rank::2], batches, strict=True))


def test_languages_are_added_stage_by_stage(corpus: Any, tmp_path: Any) -> None:
    """As in mmBERT: a run whose stages read more languages with smaller alphas, resumed."""
    text = TextStream(objectives=("mlm",))
    codes = sorted({code for _, code in text.selected(corpus)})
    stages = tuple(
        StageConfig(
            steps=4, streams={"text": replace(text, languages=read, alpha=alpha, end_alpha=end)}
        )
        for read, alpha, end in ((tuple(codes[:1]), 0.7, None), (tuple(codes), 0.5, 0.3))
    )
    config, quiet = replace(driver.config(), stages=stages), Console(quiet=True)
    assert config.fingerprint() != replace(config, stages=stages[:1] * 2).fingerprint()
    pretrain(config, corpus, tmp_path / "whole", console=quiet)
    train(config, corpus, tmp_path / "run", resume=False, stop_at=6)
    states = [Checkpoint(one).state for one in sorted((tmp_path / "run/checkpoints").iterdir())]
    read = {state.stage: len(state.cursor.counters) for state in states}
    assert read == {0: 1, 1: len(codes)} or read == {1: len(codes)}
    train(config, corpus, tmp_path / "run", resume=True)
    assert_same(tmp_path / "run", tmp_path / "whole")


def test_an_end_of_alpha_without_alpha_is_refused() -> None:
    with pytest.raises(RecipeError, match="end_alpha is for sampling: languages"):
        TextStream(objectives=("mlm",), sampling="epochs", end_alpha=0.3)


def scheduled(**stage: Any) -> Any:
    """The plain run with a schedule in its first stage."""
    config = driver.config()
    return replace(config, stages=(replace(config.stages[0], **stage), config.stages[1]))


def test_a_resumed_run_is_exact(corpus: Any, tmp_path: Any) -> None:
    config, quiet = scheduled(masking_rate=MaskingRate(start=0.4, end=0.1)), Console(quiet=True)
    counts: list[int] = []
    pretrain(
        config,
        corpus,
        tmp_path / "whole",
        console=quiet,
        on_step=lambda result: counts.append(result.counts["mlm"]),
    )
    train(config, corpus, tmp_path / "run", resume=False, stop_at=4)
    train(config, corpus, tmp_path / "run", resume=True)
    assert_same(tmp_path / "run", tmp_path / "whole")
    assert counts[0] > 3 * counts[9], "40 % fall to 10 %"


def test_the_setting_is_part_of_the_fingerprint_only_where_it_is_used() -> None:
    plain = driver.config()
    one = scheduled(masking_rate=MaskingRate(start=0.3))
    other = scheduled(masking_rate=MaskingRate(start=0.3, end=0.15))
    assert len({plain.fingerprint(), one.fingerprint(), other.fingerprint()}) == 3
    assert "masking_rate" not in repr(plain.stages)


def test_a_stage_without_such_an_objective_is_refused() -> None:
    pairs = ParallelStream(objectives=("camlm",))
    stage = StageConfig(
        steps=2, streams={"parallel": pairs}, masking_rate=MaskingRate(start=0.3, end=0.15)
    )
    config = replace(driver.config(), stages=(driver.config().stages[0], stage))
    with pytest.raises(RecipeError, match=r"stages\.1\.masking_rate is for the objectives mlm"):
        objectives_of(config)


def test_memory_is_estimated_at_the_highest_rate(corpus: Any) -> None:
    config = driver.config()
    low, rising, high = (
        estimate_memory(
            replace(config, stages=(replace(config.stages[0], masking_rate=rate),)),
            corpus,
            device="cpu",
        )
        for rate in (
            MaskingRate(start=0.1),
            MaskingRate(start=0.1, end=0.5),
            MaskingRate(start=0.5),
        )
    )
    assert low.logits < rising.logits == high.logits
