"""Better beyond noise: paired examples, independent intervals, repetitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isoglot.intervals import interval, means_of, pack_outcomes
from isoglot.report.leaderboard import MeanScore, build_leaderboard
from isoglot.report.noise import (
    _example_error,
    _repetition_error,
    compare_models,
    is_better,
    is_better_over_tasks,
)
from isoglot.results import Results, Score

SCORE = Score(task="xnli", version=1, language="de", metric="accuracy", value=0.0, count=0)


def scored(outcomes, data="d", language="de", **more):
    values = np.array(outcomes, bool)
    low, high = interval(means_of(values.astype(float)))
    return replace(
        SCORE, language=language, value=float(values.mean()), count=len(values), low=low, high=high,
        outcomes=pack_outcomes(values[None]), data=data, **more,
    )  # fmt: skip


def models(**files):
    """Name -> its scores in the only column; each argument has one list of scores for each file."""
    board = build_leaderboard(
        {
            name: [Results(model=name, fingerprint=name, scores=tuple(own)) for own in lists]
            for name, lists in files.items()
        }
    )
    (column,) = board.columns
    return board.scores_of(column)


HALF = [True, False] * 100
BETTER = [True] * 8 + HALF[8:]
"""Four of two hundred examples more, and no example less."""


def test_the_same_examples_are_drawn_for_both():
    """2 points are within both intervals, and beyond noise if examples are paired."""
    pair = models(a=[[scored(HALF)]], b=[[scored(BETTER)]])
    assert pair["b"].by_language["de"].low < 0.5 < pair["b"].by_language["de"].high
    assert is_better(pair["b"], pair["a"], ["de"], higher=True)
    assert not is_better(pair["a"], pair["b"], ["de"], higher=True)
    assert is_better(pair["a"], pair["b"], ["de"], higher=False)


def test_other_data_are_not_paired():
    apart = models(a=[[scored(HALF)]], b=[[scored(BETTER, data="other")]])
    assert not is_better(apart["b"], apart["a"], ["de"], higher=True)
    without = [[replace(scored(BETTER), outcomes=None)]]
    assert not is_better(models(b=without)["b"], apart["a"], ["de"], higher=True)


def test_a_tenth_more_is_beyond_independent_noise():
    one, other = scored([True] * 550 + [False] * 450), scored([True] * 450 + [False] * 550)
    for change in ({"outcomes": None}, {"outcomes": None, "low": None, "high": None}):
        pair = models(a=[[replace(one, **change)]], b=[[replace(other, **change)]])
        assert is_better(pair["a"], pair["b"], ["de"], higher=True)
        small = [[replace(s, count=20, **change) if change.get("low", 1) is None else s]
                 for s in (one, other)]  # fmt: skip
        if "low" in change:
            few = models(a=[small[0]], b=[small[1]])
            assert not is_better(few["a"], few["b"], ["de"], higher=True), "20 examples"


def test_the_error_of_repetitions_counts():
    steady = [[scored(BETTER, seed=n)] for n in range(3)]
    assert is_better(models(b=steady)["b"], models(a=[[scored(HALF)]])["a"], ["de"], higher=True)
    runs = [[scored(values, seed=n)] for n, values in
            enumerate(([True] * 40 + HALF[40:], HALF, [False] * 30 + HALF[30:]))]  # fmt: skip
    unsteady = models(b=runs)["b"]
    assert unsteady.by_language["de"].mean > 0.5
    assert not is_better(unsteady, models(a=[[scored(HALF)]])["a"], ["de"], higher=True)


def test_only_one_that_beats_all_is_marked():
    three = models(a=[[scored(HALF)]], b=[[scored(BETTER)]], c=[[scored(BETTER)]])
    assert compare_models(three, ["de"], higher=True).best() is None, "b and c are alike"
    assert compare_models({n: three[n] for n in "ab"}, ["de"], higher=True).best() == "b"
    assert compare_models({n: three[n] for n in "ab"}, ["de"], higher=False).best() == "a"
    assert compare_models({"a": three["a"]}, ["de"], higher=True).best() is None
    assert compare_models(three, [], higher=True).best() is None
    assert compare_models(three, ["sw"], higher=True).best() is None


def test_languages_are_averaged():
    """Better in one language and worse by as much in the other is no difference."""
    both = models(
        a=[[scored(HALF), scored(BETTER, language="sw")]],
        b=[[scored(BETTER), scored(HALF, language="sw")]],
    )
    assert compare_models(both, ["de", "sw"], higher=True).best() is None
    assert compare_models(both, ["de"], higher=True).best() == "b"
    assert compare_models(both, ["sw"], higher=True).best() == "a"


def test_noise_seldom_looks_like_a_difference():
    rng = np.random.default_rng(0)
    marked = 0
    for _ in range(60):
        one, other = rng.random((2, 300)) < 0.4
        marked += (
            compare_models(
                models(a=[[scored(one)]], b=[[scored(other)]]), ["de"], higher=True
            ).best()
            is not None
        )
    assert marked <= 9, "5 % are expected"


def test_equal_models_of_a_hundred_right_answers():
    pair = models(a=[[scored([True] * 100)]], b=[[scored([True] * 100)]])
    assert compare_models(pair, ["de"], higher=True).best() is None
    assert pair["a"].outcomes["de"][1].tolist() == pytest.approx([1.0] * 100)
    for higher in (True, False):
        assert not is_better(pair["a"], pair["b"], ["de"], higher=higher)


def test_a_model_without_one_of_the_languages_does_not_compete():
    three = models(
        a=[[scored(HALF), scored(HALF, language="sw")]],
        b=[[scored(BETTER)]],
        c=[[scored(BETTER), scored(BETTER, language="sw")]],
    )
    assert compare_models(three, ["de", "sw"], higher=True).best() == "c"


def test_the_repetitions_of_an_average_are_those_of_the_average():
    """Two seeds go up in one language and down in the other: the average does not move."""
    up, down = [True] * 40 + HALF[40:], [False] * 30 + HALF[30:]
    runs = [[scored(up, seed=0), scored(down, language="sw", seed=0)],
            [scored(down, seed=1), scored(up, language="sw", seed=1)]]  # fmt: skip
    swinging = models(b=runs)["b"]
    lower = [[scored([False] * 4 + HALF[4:]), scored([False] * 4 + HALF[4:], language="sw")]]
    other = models(a=lower)["a"]
    assert swinging.average.sd == pytest.approx(0.0)
    assert swinging.by_language["de"].sd > 0.1
    assert is_better(swinging, other, ["de", "sw"], higher=True)
    assert not is_better(swinging, other, ["de"], higher=True)


def test_standard_errors_over_examples():
    share = MeanScore(0.3, None, 1, 100)
    assert _example_error(share) == pytest.approx((0.3 * 0.7 / 100) ** 0.5)
    assert _example_error(replace(share, low=0.2, high=0.592)) == pytest.approx(0.1)
    assert _example_error(replace(share, high=0.4)) == _example_error(share)
    assert _example_error(replace(share, mean=30.0)) == 0.0, "BLEU is no share"
    assert _example_error(replace(share, count=0)) == 0.0
    assert _repetition_error(share) == 0.0
    assert _repetition_error(replace(share, sd=0.2, repetitions=4)) == pytest.approx(0.1)


def test_ranks_count_the_models_that_are_better_beyond_noise():
    """Compared with every pair, tested one by one."""
    far = [True] * 60 + HALF[60:]
    four = models(
        a=[[scored(HALF)]], b=[[scored(BETTER)]], c=[[scored([*BETTER[:-2], True, True])]],
        d=[[scored(far)]],
    )  # fmt: skip
    compared = compare_models(four, ["de"], higher=True)
    for name in four:
        better = [n for n in four if is_better(four[n], four[name], ["de"], higher=True)]
        assert compared.rank(name) == 1 + len(better)
    assert [compared.rank(name) for name in "abcd"] == [4, 2, 2, 1]
    assert compared.top() == ["d"]
    assert compare_models({n: four[n] for n in "abc"}, ["de"], higher=True).top() == ["b", "c"]
    assert compare_models(four, ["de"], higher=False).rank("a") == 1


def test_a_mean_over_tasks_is_beyond_noise_where_no_task_is():
    """Sixteen tasks, 4 examples more and 2 less: 0.8 standard errors each, 3.3 in the mean."""
    rng = np.random.default_rng(1)
    tasks = []
    for _ in range(16):
        one = rng.random(200) < 0.5
        other = one.copy()
        other[:6] = [True, True, True, True, False, False]
        one[:6] = ~other[:6]
        pair = models(a=[[scored(one)]], b=[[scored(other)]])
        tasks.append((pair["b"], pair["a"], ["de"]))
    assert not any(is_better(*task, higher=True) for task in tasks)
    assert is_better_over_tasks(tasks)
    assert not is_better_over_tasks([(b, a, codes) for a, b, codes in tasks])
    assert not is_better_over_tasks(tasks[:1])
