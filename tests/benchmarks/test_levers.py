"""Levers: every arm is a recipe, equal time, and the numbers of the table by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from benchmarks.levers.arms import ALL, BASELINE, CONTROLS, LEVERS, settings_of, steps_in, timed_as
from benchmarks.levers.table import loss_at, table, tokens_to
from benchmarks.levers.train import RECIPE

from isoglot.recipe import load_recipe

ARMS = (BASELINE, *LEVERS, *CONTROLS, ALL, "shape+muon")


@pytest.mark.parametrize("small", [False, True])
def test_every_arm_is_a_recipe_that_differs_in_its_levers_alone(small: bool) -> None:
    recipes = {arm: load_recipe(str(RECIPE), settings_of(arm, 40, small=small)) for arm in ARMS}
    assert len({one.fingerprint() for one in recipes.values()}) == len(ARMS)
    base, every = recipes[BASELINE], recipes[ALL]
    assert (base.model.size, every.model.size) == ("small", "modern-small")
    warmup = every.stages[0].batch_warmup
    assert warmup is not None
    assert (2 * warmup.start_rows, warmup.steps) == (base.batch.rows, 10)
    assert base.objectives["mlm"] == every.objectives["mlm"], "validation masks the same tokens"


def test_steps_fill_the_same_seconds() -> None:
    assert steps_in(24.0, 0.03, None) == 800
    # a quarter of the steps takes 20 ms, the rest 40 ms: 35 ms on average
    assert steps_in(24.0, 0.04, 0.02) == round(24 / 0.035)
    assert timed_as("wsd") == timed_as("lr-2") == BASELINE
    assert timed_as(ALL) == "shape+dropout+muon+masking+averaging+batch-warmup"


def cell(arm: str, seed: int, losses: list[float], tokens: int = 100) -> dict[str, Any]:
    points = [
        {"step": n, "tokens": tokens * n, "losses": {"en": loss - 0.5, "sw": loss + 0.5}}
        for n, loss in enumerate(losses, start=1)
    ]
    return {
        "arm": arm, "seed": seed, "gpu_seconds": 24.0, "tokens": points[-1]["tokens"],
        "points": points,
    }  # fmt: skip


def test_losses_between_validations_are_read_on_a_line() -> None:
    one = cell(BASELINE, 0, [6.0, 4.0, 3.0])
    assert loss_at(one, 150) == pytest.approx(5.0)
    assert (loss_at(one, 50), loss_at(one, 900)) == pytest.approx((6.0, 3.0))
    assert tokens_to(one, 3.5) == pytest.approx(250)
    assert (tokens_to(one, 7.0), tokens_to(one, 2.9)) == (100, None)


def test_the_table_by_hand() -> None:
    cells = {
        "baseline-0": cell(BASELINE, 0, [6.0, 4.0, 3.0]),
        "baseline-1": cell(BASELINE, 1, [6.0, 4.0, 3.2]),
        "wsd-0": cell("wsd", 0, [5.0, 3.0, 2.0]),
        "wsd-1": cell("wsd", 1, [5.0, 3.2, 2.4]),
    }
    row = next(line for line in table(cells).splitlines() if line.startswith("| wsd"))
    _, _, seeds, tokens, perplexity, paired, _, reached, _ = (
        part.strip() for part in row.split("|")
    )
    assert (seeds, tokens) == ("2", "0.0")
    low, high = math.exp(2.0), math.exp(2.4)
    assert perplexity == f"{(low + high) / 2:.2f} ± {(high - low) / math.sqrt(2):.2f}"
    assert paired == "-0.900 ± 0.141"
    assert reached == "0.67 ± 0.00", "3.0 and 3.2 after 200 of 300 tokens"
