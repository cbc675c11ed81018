"""The table of claims: its arms are recipes; differences, intervals and verdicts by hand."""

from __future__ import annotations

from itertools import product
from statistics import fmean, stdev
from typing import Any

import pytest
from benchmarks.claims.findings import Difference, Findings
from benchmarks.claims.table import ROWS, SMALL_ROWS, read_table

from isoglot.recipe import load_recipe

TABLE = read_table()
T_95_FOR_5 = 2.7764451
"""97.5 % of Student's distribution with four degrees of freedom, from a printed table."""


@pytest.mark.parametrize("name", TABLE.arms)
def test_every_arm_is_a_recipe_of_as_many_tokens(name: str) -> None:
    arm = TABLE.arms[name]
    steps = arm.steps(500)
    recipe = load_recipe(str(arm.file), [f"stages.0.steps={steps}", *arm.settings])
    assert recipe.batch.rows == (SMALL_ROWS if arm.small_steps else ROWS)
    tokens = steps * recipe.batch.rows * recipe.batch.row_length
    assert tokens == pytest.approx(500 * 256 * 256, rel=1e-3)


def test_a_queue_changes_the_candidates_alone() -> None:
    for pooling in ("first", "mean"):
        found = []
        for kind in ("queue", "in-batch"):
            arm = TABLE.arms[f"{kind}-{pooling}"]
            found.append(load_recipe(str(arm.file), list(arm.settings)).objectives["moco"])
        queue, batch = found
        for name in ("pooling", "projection", "temperature", "weight", "layer"):
            assert getattr(queue, name) == getattr(batch, name), name


@pytest.mark.parametrize("name", TABLE.checkpoints)
def test_checkpoints_are_deterministic_of_the_modern_shape_and_of_equal_steps(name: str) -> None:
    checkpoint = TABLE.checkpoints[name]
    recipe = load_recipe(str(checkpoint.file), list(checkpoint.settings))
    assert recipe.deterministic
    assert recipe.model.size == "modern-small"
    assert (recipe.batch.rows, recipe.batch.row_length) == (ROWS, 256)


def test_an_interval_by_hand() -> None:
    values = (1.0, 2.0, 1.5, 2.5, 3.0)
    half = T_95_FOR_5 * stdev(values) / 5**0.5
    found = Difference(by_seed=values)
    assert found.interval == pytest.approx((fmean(values) - half, fmean(values) + half))
    assert found.sign == 1
    assert Difference(by_seed=(-1.0, 1.0, 0.5)).sign == 0
    assert Difference(by_seed=(5.0, 5.1)).interval is None, "two seeds have none"


def cells(**gains: dict[str, float]) -> dict[str, Any]:
    """Cells of some arms with three seeds; `gains` are what an arm has beyond 50."""
    found = {}
    for (arm, gain), seed in product(gains.items(), range(3)):
        scores = {score: 50 + seed + 0.01 * seed + gain.get(score, 0.0) for score in TABLE.scores}
        name = arm.replace("_", "-")
        found[f"{name}-{seed}"] = {"arm": name, "seed": seed, "start": "w", "scores": scores}
    return found


ALL_BETTER = {name: -2.0 if kind.lower_is_better else 2.0 for name, kind in TABLE.scores.items()}


def verdict(given: dict[str, Any], number: int = 0) -> str:
    return Findings(given, {}).verdict(TABLE.claims[number])


def test_verdicts() -> None:
    nothing: dict[str, float] = {}
    assert verdict({}) == "not run"
    assert verdict(cells(control=nothing, tlm=ALL_BETTER)) == "holds"
    assert verdict(cells(control=nothing, tlm={"pos": 2.0})) == "holds in part"
    assert verdict(cells(control=nothing, tlm=nothing)) == "not seen at this size"
    against = ALL_BETTER | {"pos": -2.0}
    assert verdict(cells(control=nothing, tlm=against)) == "holds in part"
    two = {name: cell for name, cell in cells(control=nothing, tlm=ALL_BETTER).items()
           if cell["seed"] < 2}  # fmt: skip
    assert verdict(two) == "too few seeds (2)"
    chain = cells(exp1=nothing, tlm=ALL_BETTER)
    assert verdict(chain, 1) == "open: 1 of 3 tests run"


def test_cells_of_other_checkpoints_are_not_paired() -> None:
    given = cells(control={}, tlm=ALL_BETTER)
    for name, cell in given.items():
        if name.startswith("tlm"):
            cell["start"] = "other weights"
    assert verdict(given) == "not run"


def test_the_page_has_every_claim_and_only_what_was_run() -> None:
    page = Findings(cells(control={}, tlm=ALL_BETTER), {}).page()
    assert all(claim.claim in page for claim in TABLE.claims)
    assert "**+2.0 [+2.0, +2.0]**" in page
    assert page.count("not run") >= len(TABLE.arms) - 2
    assert "| tlm |" in page
