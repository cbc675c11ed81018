"""The leaderboard's marks, means and ranks, against comparisons made one by one."""

from __future__ import annotations

import re
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from isoglot.report.inputs import ReportError
from isoglot.report.leaderboard import build_leaderboard
from isoglot.report.noise import is_better, is_better_over_tasks
from isoglot.report.ranking import ABOVE, BELOW, WITHIN, overview_table
from isoglot.report.tables import to_latex, to_markdown
from isoglot.results import Results
from tests.report.test_noise import scored

LEVELS = {"a": 0.5, "b": 0.53, "c": 0.7, "d": 0.71}


@pytest.fixture(scope="module")
def board():
    """Four models, three tasks of two languages; the errors of AER are outcomes of 1."""
    rng = np.random.default_rng(3)
    draws = {(t, c): rng.random(300) for t in ("xnli", "paws-x", "aer") for c in ("de", "sw")}
    files = {}
    for name, level in LEVELS.items():
        scores = []
        for (task, code), drawn in draws.items():
            noisy = np.where(rng.random(300) < 0.3, rng.random(300), drawn)
            errors = 0.1 if name == "d" else 1 - level  # d alone is the best in AER
            one = scored(noisy < (errors if task == "aer" else level), language=code)
            scores.append(replace(one, task=task, higher_is_better=task != "aer"))
        files[name] = [Results(model=name, fingerprint=name, scores=tuple(scores))]
    return build_leaderboard(files)


def cells(table):
    return {heading.text: numbers for heading, numbers in table.rows}


def test_marks_are_those_of_each_pair_tested_by_itself(board):
    table = overview_table(board, baseline="b")
    found = cells(table)
    codes = ["de", "sw"]
    seen = set()
    for place, column in enumerate(board.primary_columns()):
        models, higher = board.scores_of(column), column.higher_is_better
        means = {n: fmean(s.mean for s in m.by_language.values()) for n, m in models.items()}
        best = (max if higher else min)(means, key=means.__getitem__)
        beaten = {n for n in models if is_better(models[best], models[n], codes, higher=higher)}
        alone = len(beaten) == len(models) - 1
        for name, scores in models.items():
            expected = WITHIN if not alone and name not in beaten else ""
            if is_better(scores, models["b"], codes, higher=higher):
                expected += ABOVE
            if is_better(models["b"], scores, codes, higher=higher):
                expected += BELOW
            number = found[name][place]
            assert number.mark == expected
            assert number.best == (alone and name == best)
            assert not (number.best and WITHIN in number.mark), "nothing is bold within noise"
            seen.add((number.mark, number.best))
    assert {(WITHIN + ABOVE, False), ("", False), (ABOVE, True)} <= seen


def test_means_are_over_shares_that_are_better_where_higher(board):
    found = cells(overview_table(board))
    shares = [c for c in board.primary_columns() if c.higher_is_better]
    assert len(shares) == 2
    for name, numbers in found.items():
        expected = fmean(100 * board.scores[name, c].average.mean for c in shares)
        assert numbers[-2].value == pytest.approx(expected)
    pairs = {
        (one, other): is_better_over_tasks(
            [(board.scores[one, c], board.scores[other, c], ["de", "sw"]) for c in shares]
        )
        for one in LEVELS for other in LEVELS if one != other
    }  # fmt: skip
    assert pairs["c", "a"]
    assert not pairs["d", "c"]
    assert [found[n][-2].mark for n in "abcd"] == ["", "", WITHIN, WITHIN]
    assert not any(found[n][-2].best for n in LEVELS)


def test_ranks_are_means_over_all_tasks_and_sort_the_rows(board):
    table = overview_table(board)
    found = cells(table)
    for name in LEVELS:
        ranks = []
        for column in board.primary_columns():
            models, higher = board.scores_of(column), column.higher_is_better
            own = models[name]
            better = (is_better(m, own, ["de", "sw"], higher=higher) for m in models.values())
            ranks.append(1 + sum(better))
        assert found[name][-1].value == pytest.approx(fmean(ranks))
    values = [numbers[-1].value or 0.0 for _, numbers in table.rows]
    assert values == sorted(values)
    assert [heading.text for heading in table.columns[-2:]] == ["mean", "rank"]


def test_the_rule_is_stated_and_names_the_baseline(board):
    caption = overview_table(board, baseline="a").caption
    for words in ("97.5 %", "paired bootstrap", "each pair of models is tested by itself",
                  f"{WITHIN}: the best", f"{ABOVE}, {BELOW}: better, worse than a",
                  "Mean: over the 2 of 3 tasks", "Rank: one more"):  # fmt: skip
        assert words in caption
    assert ABOVE not in overview_table(board).caption
    with pytest.raises(ReportError, match="--baseline zz is not one of the models"):
        overview_table(board, baseline="zz")


def test_one_model_and_models_without_all_tasks():
    """A single model has no marks; a model without all tasks has neither mean nor rank."""
    half = scored([True, False] * 50)
    full = [half, replace(half, task="paws-x")]
    results = {"a": full, "b": full, "c": full[:1]}
    files = {n: [Results(model=n, fingerprint=n, scores=tuple(s))] for n, s in results.items()}
    alone = overview_table(build_leaderboard({"a": files["a"]}))
    assert (alone.title, len(alone.columns)) == ("Overview", 2)
    assert not any(number.mark for number in cells(alone)["a"])
    table = overview_table(build_leaderboard(files))
    assert cells(table)["c"][-1].value is None
    assert cells(table)["c"][-2].value is None
    assert [numbers[-1].value for _, numbers in table.rows[:2]] == [1.0, 1.0]
    assert table.rows[-1][0].text == "c", "models without a rank come last"


def test_markdown_and_latex_have_the_marks(board):
    table = overview_table(board, baseline="b")
    markdown = to_markdown([table])
    assert re.search(rf"\d\.\d \(\d+\.\d to \d+\.\d\) {WITHIN}{ABOVE} \|", markdown)
    latex = to_latex([table])
    assert r"$^\approx$$^\bigtriangleup$" in latex
    assert not set(latex) & {WITHIN, ABOVE, BELOW}
