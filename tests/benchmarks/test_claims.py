"""The table of claims: its arms are recipes; differences, intervals and verdicts by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import benchmarks.claims as claims_package
import pytest
from benchmarks.cells import ResultsFile
from benchmarks.claims import verdicts
from benchmarks.claims.findings import Findings, check_steps
from benchmarks.claims.table import ROWS, SMALL_ROWS, read_table
from benchmarks.claims.verdicts import Difference, rejected

from isoglot.recipe import load_recipe

TABLE = read_table()
T_95_FOR_5 = 2.7764451
"""97.5 % of Student's distribution with four degrees of freedom, from a printed table."""


ENCODERS = [name for name, arm in TABLE.arms.items() if not arm.is_translation]


@pytest.mark.parametrize("name", ENCODERS)
def test_every_arm_is_a_recipe_of_as_many_tokens(name: str) -> None:
    arm = TABLE.arms[name]
    steps = arm.steps(500)
    recipe = load_recipe(str(arm.file), [f"stages.0.steps={steps}", *arm.settings])
    assert recipe.batch.rows == (SMALL_ROWS if arm.small_steps else ROWS)
    tokens = steps * recipe.batch.rows * recipe.batch.row_length
    assert tokens == pytest.approx(500 * 256 * 256, rel=1e-3)


def test_arms_of_translation_differ_in_the_objectives_of_their_first_stage_alone() -> None:
    mass, gc = (
        load_recipe(str(TABLE.arms[name].file), list(TABLE.arms[name].settings))
        for name in ("unmt-mass", "unmt-gc")
    )
    assert (mass.model, mass.batch, mass.loss) == (gc.model, gc.batch, gc.loss)
    assert [stage.steps for stage in mass.stages] == [stage.steps for stage in gc.stages]
    assert [stage.optimizer for stage in mass.stages] == [stage.optimizer for stage in gc.stages]
    assert mass.stages[1].streams == gc.stages[1].streams
    first, own = (recipe.stages[0].streams["text"].objectives for recipe in (mass, gc))
    assert (first, own) == (("mass",), ("mass", "cooccurrence"))


def test_mixtures_of_contrast_differ_from_in_batch_mean_in_what_they_name() -> None:
    base = TABLE.arms["in-batch-mean"]
    told = load_recipe(str(base.file), list(base.settings))
    for name in ENCODERS:
        if name.startswith("c-"):
            arm = TABLE.arms[name]
            recipe = load_recipe(str(arm.file), list(arm.settings))
            assert set(base.settings) <= set(arm.settings), name
            assert replace(arm, what="") != replace(base, what=""), name
            assert (recipe.optimizer, recipe.batch, recipe.loss) == (
                told.optimizer,
                told.batch,
                told.loss,
            )
            shares = [stream.share for stream in recipe.stages[0].streams.values()]
            assert sum(shares) == 1.0, name


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
    assert Difference(by_seed=(5.0, 5.1)).interval is None, "two seeds have none"
    assert Difference(by_seed=(5.0, 5.1)).p_value is None


def test_a_p_value_is_below_5_percent_where_the_interval_excludes_0() -> None:
    t = 2.776445105  # of a mean of this many standard errors, p is 5 % with four degrees of freedom
    noise = (-2.0, -1.0, 0.0, 1.0, 2.0)
    error = stdev(noise) / 5**0.5
    for shift, below in ((1.001 * t * error, True), (0.999 * t * error, False)):
        for sign in (1, -1):
            found = Difference(by_seed=tuple(sign * shift + one for one in noise))
            assert found.p_value == pytest.approx(0.05, abs=1e-3)
            assert found.p_value is not None
            assert (found.p_value < 0.05) is below
            assert found.interval is not None
            assert (found.interval[0] * found.interval[1] > 0) is below
    assert Difference(by_seed=(2.0, 2.0, 2.0)).p_value == 0.0
    assert Difference(by_seed=(0.0, 0.0, 0.0)).p_value == 1.0


def test_holms_procedure_by_hand() -> None:
    # 0.05 / 4, / 3, / 2, / 1: the third fails, so the fourth is not looked at
    found = {"a": 0.012, "b": 0.016, "c": 0.026, "d": 0.04}
    assert rejected(found) == {"a", "b"}
    assert rejected(found | {"c": 0.024}) == {"a", "b", "c", "d"}
    assert rejected({"a": 0.02, "b": 0.9, "c": 0.9}) == set(), "alone it would count"
    assert rejected({}) == set()


SCORES = {name: kind for name, kind in TABLE.scores.items() if not kind.translation}


def cells(**gains: dict[str, float]) -> dict[str, Any]:
    """Cells of some arms with three seeds; `gains` are what an arm has beyond 50."""
    found = {}
    for (arm, gain), seed in product(gains.items(), range(3)):
        scores = {score: 50 + seed + 0.01 * seed + gain.get(score, 0.0) for score in SCORES}
        name = arm.replace("_", "-")
        found[f"{name}-{seed}"] = {"arm": name, "seed": seed, "start": "w", "scores": scores}
    return found


ALL_BETTER = {name: -2.0 if kind.lower_is_better else 2.0 for name, kind in SCORES.items()}
ALL_WORSE = {name: -value for name, value in ALL_BETTER.items()}


def verdict(given: dict[str, Any], number: int = 0) -> str:
    return Findings(given, {}).verdict(TABLE.claims[number])


def test_verdicts() -> None:
    nothing: dict[str, float] = {}
    assert verdict({}) == "not run"
    assert verdict(cells(control=nothing, tlm=ALL_BETTER)) == "holds"
    assert verdict(cells(control=nothing, tlm={"pos": 2.0})) == "holds in part"
    assert verdict(cells(control=nothing, tlm=nothing)) == "not seen at this size"
    assert verdict(cells(control=nothing, tlm=ALL_WORSE)) == "the opposite"
    assert verdict(cells(control=nothing, tlm={"pos": -2.0})) == "not seen at this size"
    assert verdict(cells(control=nothing, tlm={"pos": 2.0, "ner": -2.0})) == "mixed"
    against = ALL_BETTER | {"pos": -2.0}
    assert verdict(cells(control=nothing, tlm=against)) == "holds in part"
    two = {name: cell for name, cell in cells(control=nothing, tlm=ALL_BETTER).items()
           if cell["seed"] < 2}  # fmt: skip
    assert verdict(two) == "too few seeds (2)"
    chain = cells(exp1=nothing, tlm=ALL_BETTER)
    assert verdict(chain, 1) == "open: 1 of 3 tests run"


def test_a_difference_counts_after_correction_over_the_scores_of_its_test() -> None:
    given = cells(control={}, tlm={})
    for seed, noise in enumerate((0.6, 1.0, 1.4)):  # t = 4.33 with two degrees of freedom, p 4.9 %
        given[f"tlm-{seed}"]["scores"]["pos"] += noise
    found = Findings(given, {}).differences({"tlm": 1, "control": -1})
    ends = found["pos"].interval
    assert ends is not None
    assert ends[0] > 0, "the interval excludes 0"
    assert set(Findings(given, {}).signs(found).values()) == {0}, "one of ten scores"
    page = Findings(given, {}).page()
    assert "+1.0 [+0.0, +2.0]" in page
    assert "**+1.0" not in page


def test_differences_of_arms_at_chance_do_not_count() -> None:
    given = cells(control={"nli": -17.5}, tlm=ALL_BETTER | {"nli": -16.9})
    for cell in given.values():
        cell["scores"]["nli"] += 0.3 * (cell["seed"] - 1) - cell["seed"]
    contrast = {"tlm": 1, "control": -1}
    found = Findings(given, {})
    assert "nli" not in found.signs(found.differences(contrast)), "33.1 ± 0.3, chance 33.3"
    assert "+0.6 [+0.6, +0.6]°" in found.page()
    for cell in given.values():
        cell["scores"]["nli"] += 10.0 * (cell["arm"] == "tlm")
    found = Findings(given, {})
    assert found.signs(found.differences(contrast))["nli"] == 1
    for cell in given.values():
        cell["details"] = {"facts chance": 60.0}
    found = Findings(given, {})
    assert "facts" not in found.signs(found.differences(contrast)), "as the cells tell it"


def test_a_united_recipe_is_chosen_and_tested_by_other_seeds_and_scores() -> None:
    search = TABLE.search
    assert search.rivals[0] == "control", "candidates are compared with it"
    gains = {"c-quarter": 3.0, "c-mlm": 5.0, "c-tlm": 9.0, "control": 0.0, "camlm": 1.0}
    given: dict[str, Any] = {}
    for (arm, gain), seed in product(gains.items(), range(5)):
        if arm == "c-tlm" and seed:
            continue  # it has not all seeds of the search
        lucky = 30.0 * (arm == "c-quarter" and seed > 1)  # seeds that must not choose
        given[f"{arm}-{seed}"] = {
            "arm": arm,
            "seed": seed,
            "start": "w",
            "scores": {"pos": 50 + gain + 0.1 * seed * (arm == "camlm"), "aer_joint": 40 - gain},
            "development": {"pos": 50 + gain + lucky, "aer_joint": 40 - gain - lucky},
        }
    found = Findings(given, {})
    assert found.development_means() == {
        "c-tlm": (9.0, 1),
        "c-mlm": (5.0, 2),
        "c-quarter": (3.0, 2),
        "camlm": (1.0, 2),
    }
    assert found.chosen() == "c-mlm"
    assert found.test_seeds() == [2, 3, 4]
    assert set(found.rivals("c-mlm")) == {"control", "camlm"}
    assert found.mean_difference({"c-mlm": 1, "control": -1}, [2, 3, 4]).by_seed == (5.0,) * 3
    assert found.beats({"c-mlm": 1, "control": -1}) == "yes"
    assert found.beats({"control": 1, "c-mlm": -1}) == "no"
    page = found.page()
    assert "Chosen: `c-mlm`." in page
    assert "| camlm (no candidate) | +1.00 | 2 |" in page
    for seed in range(5):
        given[f"c-mlm-{seed}"]["scores"] |= {"aer_joint": 41.0, "pos": 70.0}
    assert Findings(given, {}).beats({"c-mlm": 1, "control": -1}) == "not in AER, joint"


def test_seeds_of_candidates_beyond_the_search_come_last() -> None:
    search, names = TABLE.search, TABLE.cells([0, 1, 2, 3, 4], [])
    assert len(set(names)) == len(names) == 5 * len(TABLE.arms)
    late = {f"{arm}-{seed}" for arm in search.candidates for seed in range(5)}
    late -= {f"{arm}-{seed}" for arm in search.candidates for seed in search.seeds}
    assert set(names[-len(late) :]) == late
    assert TABLE.cells([4], ["c-mlm", "control"]) == ["c-mlm-4", "control-4"], "as named"


def test_the_order_begins_with_every_papers_main_claim() -> None:
    first = {arm for group in TABLE.order[:3] for arm in group}
    papers = {
        claim.paper
        for claim in TABLE.claims
        if any(first.issuperset(test) for test in claim.tests.values())
    }
    assert papers >= {claim.paper for claim in TABLE.claims} - {"ours"}


def test_an_arm_of_an_earlier_table_is_left_out() -> None:
    given = cells(control={}, tlm=ALL_BETTER, gone={})
    assert verdict(given) == "holds"
    assert "| gone |" not in Findings(given, {}).page()


def test_cells_of_other_checkpoints_are_not_paired() -> None:
    given = cells(control={}, tlm=ALL_BETTER)
    for name, cell in given.items():
        if name.startswith("tlm"):
            cell["start"] = "other weights"
    assert verdict(given) == "not run"


def test_values_of_another_version_of_a_score_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = cells(control={}, tlm=ALL_BETTER)
    scores = TABLE.scores | {"pos": replace(TABLE.scores["pos"], version=2)}
    monkeypatch.setattr(verdicts, "read_table", lambda: replace(TABLE, scores=scores))
    contrast = {"tlm": 1, "control": -1}
    assert "pos" not in Findings(given, {}).differences(contrast), "these have version 1"
    for name, cell in given.items():
        if name != "tlm-2":
            cell["versions"] = {"pos": 2}
    found = Findings(given, {}).differences(contrast)
    assert len(found["pos"].by_seed) == 2
    assert len(found["ner"].by_seed) == 3, "which has one version"


def test_results_of_other_steps_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / f"{steps}.json" for steps in (400, 500)]
    for file in files:
        file.write_text(json.dumps({"about": {"steps": int(file.stem)}, "cells": {}}))
    check_steps([files[0], files[0]])
    with pytest.raises(SystemExit, match="400, 500"):
        check_steps(files)


def test_claims_of_scores_of_their_own_are_shown_with_these_alone() -> None:
    scores = {"multi30k_en_de": 5.0, "mass_perplexity": 60.0}
    given = {
        f"{arm}-{seed}": {
            "arm": arm,
            "seed": seed,
            "start": "scratch",
            "checkpoints": {},
            "scores": {name: value + gain + seed for name, value in scores.items()},
        }
        for arm, gain in (("unmt-mass", 0.0), ("unmt-gc", 1.0))
        for seed in range(3)
    }
    page = Findings(given, {}).page()
    row = "| MASS and GC > MASS | **+1.0 [+1.0, +1.0]** | **-1.0 [-1.0, -1.0]** | 1, 1 of 2 |"
    assert f"{row} mixed |" in page
    assert "| MLM-GC | It helps unsupervised translation. | mixed | 3 |" in page
    assert "| arm | trained with | seeds | Multi30k en-de |" in page


def test_the_page_has_every_claim_and_only_what_was_run() -> None:
    page = Findings(cells(control={}, tlm=ALL_BETTER), {}).page()
    assert all(claim.claim in page for claim in TABLE.claims)
    assert "**+2.0 [+2.0, +2.0]**" in page
    assert "Arms that have not been run: " in page
    assert all(f"`{arm}`" in page for arm in TABLE.arms if arm not in ("control", "tlm"))
    assert "| control |" in page
    assert "| exp1 |" not in page
    assert "| tlm |" in page


RESULTS = sorted((Path(claims_package.__file__).parent / "results").glob("*.json"))
ROOT = Path(__file__).parents[2]


def stored(tmp_path: Path) -> ResultsFile:
    """The results in benchmarks/claims/results."""
    return ResultsFile(tmp_path / "none.json", RESULTS)


def test_the_page_of_findings_is_that_of_the_stored_results(tmp_path: Path) -> None:
    results = stored(tmp_path)
    page = Findings(results.cells, results.about).page()
    assert (ROOT / "docs" / "findings.md").read_text(encoding="utf-8") == page


def test_the_numbers_of_the_readme_are_those_of_the_stored_results(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    values: dict[str, list[dict[str, float]]] = {}
    for cell in stored(tmp_path).cells.values():
        values.setdefault(cell["arm"], []).append(cell["scores"])
    shown = {"control": "MLM, the control", "camlm": "CAMLM (ERNIE-M)", "in-batch-mean": "contrast"}
    for arm, label in shown.items():
        (row,) = (line for line in page.splitlines() if line.startswith(f"| {label}"))
        told = [cell.strip(" *") for cell in row.split("|")[2:-1]]
        for score, text in zip(
            ("ntrex", "tatoeba", "aer_alone", "pos", "nli", "perplexity"), told, strict=True
        ):
            own = [one[score] for one in values[arm]]
            assert text == f"{fmean(own):.1f} ± {stdev(own):.1f}", (arm, score)
