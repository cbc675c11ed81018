"""What tables, studies and reports share: the transfer gap."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.averaging import (
    averages,
    delivered_layer,
    headline_averages,
    metrics_of,
    scores_to_average,
    source_language,
    transfer_gap,
)
from isoglot.results import Score


def test_the_gap_is_the_source_less_the_mean_of_the_others():
    values = {"en": 0.9, "de": 0.7, "sw": 0.5}
    assert transfer_gap(values, "zero-shot from en, xtreme") == pytest.approx(0.3)
    assert transfer_gap(values, "zero-shot from sw") == pytest.approx(-0.3)


def test_a_loss_is_above_zero_also_where_less_is_better():
    values = {"en": 0.1, "de": 0.3}
    assert transfer_gap(values, "zero-shot from en", higher_is_better=False) == pytest.approx(0.2)


def test_there_is_none_without_a_source_or_without_others():
    assert transfer_gap({"en": 0.9, "de": 0.7}, "translate-train-all, ppa") is None
    assert transfer_gap({"en": 0.9}, "zero-shot from en") is None
    assert transfer_gap({"de": 0.9}, "zero-shot from en") is None
    assert transfer_gap({"en": 0.9, "de": 0.7}, None) is None


def test_questions_and_contexts_in_two_languages_do_not_count():
    values = {"en": 0.9, "de": 0.7, "en-de": 0.1}
    assert transfer_gap(values, "zero-shot from en") == pytest.approx(0.2)
    assert source_language("zero-shot from en, xlm-k, epochs=2") == "en"


def score(language, value, *, seed=0, metric="accuracy", task="xnli", **others) -> Score:
    return Score(
        task=task,
        version=1,
        language=language,
        metric=metric,
        value=value,
        count=10,
        seed=seed,
        scenario=others.pop("scenario", "zero-shot from en, xtreme"),
        **others,
    )


def test_languages_first_then_seeds():
    scores = [
        score("en", 0.8, seed=0),
        score("sw", 0.4, seed=0),
        score("en", 0.9, seed=1),
        score("sw", 0.5, seed=1),
    ]
    (found,) = averages(scores)
    assert found.by_seed == pytest.approx((0.6, 0.7))
    assert found.mean == pytest.approx(0.65)
    assert found.sd == pytest.approx(0.0707, abs=1e-4)
    assert found.best_seed == 1
    assert found.gap == pytest.approx(0.4)


def test_where_less_is_better_the_best_seed_has_the_least():
    scores = [
        score("en-de", value, seed=i, higher_is_better=False) for i, value in enumerate((3, 2))
    ]
    assert averages(scores)[0].best_seed == 1


def test_only_languages_of_all_seeds_count():
    scores = [score("en", 0.8), score("sw", 0.2), score("en", 0.6, seed=1)]
    (found,) = averages(scores)
    assert found.languages == ("en",)
    assert found.mean == pytest.approx(0.7)


def test_f1_and_exact_match_are_averaged_in_the_tasks_one_number():
    scores = [score("en", 0.8, metric="f1"), score("en", 0.6, metric="exact")]
    scores += [score("en", 0.9, metric="f1", seed=1), score("en", 0.5, metric="exact", seed=1)]
    found = averages(scores)
    assert [average.metric for average in found] == ["f1/exact", "f1", "exact"]
    one = headline_averages(found)["xnli"]
    assert one.metric == "f1/exact"
    assert one.by_seed == pytest.approx((0.7, 0.7))


def test_questions_across_languages_are_averaged_apart():
    values = {"en": 0.9, "de": 0.7, "de-en": 0.2, "en-de": 0.4}
    own, across = averages(
        [score(code, value, task="mlqa", metric="f1") for code, value in values.items()]
    )
    assert (own.metric, own.languages) == ("f1", ("en", "de"))
    assert across.metric == "f1 G-XLT"
    assert [own.mean, across.mean] == pytest.approx([0.8, 0.3])
    assert headline_averages([across, own])["mlqa"].metric == "f1"


def test_words_are_headlined_by_the_best_layer_and_not_by_the_embedding_table():
    scores = [score("en-de", 0.9, task="xling", metric="p@1 table")]
    scores += [score("en-de", v, task="xling", metric="p@1", layer=n) for n, v in enumerate((1, 2))]
    one = headline_averages(averages(scores))["xling"]
    assert (one.metric, one.layer) == ("p@1", 1)


def test_f1_alone_is_not_mixed_with_its_parts():
    scores = [score("en", 0.8, metric=m) for m in ("f1", "precision", "recall")]
    assert headline_averages(averages(scores))["xnli"].metric == "f1"


def test_of_several_layers_the_delivered_one_is_the_headline():
    scores = [score("en-de", value, layer=i) for i, value in enumerate((0.1, 0.7, 0.3))]
    assert headline_averages(averages(scores))["xnli"].layer == 2, "not the best on the test"
    exported = [*scores, score("en-de", 0.2, layer=None)]
    assert headline_averages(averages(exported))["xnli"].mean == 0.2
    assert delivered_layer([0]) == 0
    assert delivered_layer([]) is None


def test_f1_and_exact_have_the_mean_interval():
    f1 = replace(score("de", 0.8), metric="f1", low=0.7, high=0.9, halves=(0.8, 0.8))
    exact = replace(f1, metric="exact", value=0.6, low=0.4, high=0.7, outcomes="1x0:")
    both, *_ = scores_to_average([f1, exact])
    assert both.metric == "f1/exact"
    assert (both.value, both.low, both.high) == pytest.approx((0.7, 0.55, 0.8))
    assert (both.halves, both.outcomes) == (None, None)
    without, *_ = scores_to_average([replace(f1, low=None), exact])
    assert without.low is None


@settings(max_examples=30, deadline=None)
@given(table=st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_mean_is_that_of_the_whole_table(table):
    scores = [
        score(code, value, seed=seed)
        for seed, row in enumerate(table)
        for code, value in zip(("en", "de", "sw"), row, strict=True)
    ]
    (found,) = averages(scores)
    assert found.mean == pytest.approx(mean(value for row in table for value in row))


@pytest.mark.parametrize(("higher", "best"), [(True, "b"), (False, "a")])
def test_the_headline_is_of_the_best_scenario_also_where_less_is_better(higher, best):
    found = averages(
        score("de", value, scenario=scenario, higher_is_better=higher)
        for scenario, value in (("a", 0.2), ("b", 0.6))
    )
    assert headline_averages(found)["xnli"].scenario == best


def test_a_model_near_chance_has_no_gap():
    values = {"en": 0.39, "de": 0.35}
    scenario = "zero-shot from en, xtreme"
    assert transfer_gap(values, scenario, chance=1 / 3) is None
    assert transfer_gap({**values, "en": 0.41}, scenario, chance=1 / 3) == pytest.approx(0.06)
    assert transfer_gap({"en": 0.09, "de": 0.05}, scenario) is None
    assert transfer_gap({"en": 0.1, "de": 0.05}, scenario) == pytest.approx(0.05)
    error = {"en": 0.05, "de": 0.2}
    assert transfer_gap(error, scenario, higher_is_better=False) == pytest.approx(0.15)


def test_the_chance_of_an_average_is_that_of_its_source_language():
    def averaged(of_english, of_german):
        scores = [replace(score("en", 0.5), chance=of_english),
                  replace(score("de", 0.4), chance=of_german)]  # fmt: skip
        (found,) = averages(scores)
        return found.gap

    assert averaged(None, 0.9) == pytest.approx(0.1)
    assert averaged(0.3, 0.9) == pytest.approx(0.1)
    assert averaged(0.45, None) is None


def test_the_interval_of_an_average_is_the_mean_over_seeds():
    def scored(seed, low, high, code):
        return replace(score(code, (low + high) / 2, seed=seed), low=low, high=high)

    found = [scored(0, 0.4, 0.6, "en"), scored(0, 0.6, 0.8, "de"),
             scored(1, 0.5, 0.7, "en"), scored(1, 0.6, 0.8, "de")]  # fmt: skip
    (average,) = averages(found)
    half = (2 * 0.1**2) ** 0.5 / 2
    assert average.interval == pytest.approx((0.625 - half, 0.625 + half))
    (without,) = averages([*found[:3], replace(found[3], low=None)])
    assert without.interval is None


def test_the_metrics_of_an_average():
    (one,) = averages([score("en", 0.5)])
    assert metrics_of(one) == ("accuracy",)
    assert metrics_of(replace(one, metric="f1/exact")) == ("f1", "exact")
