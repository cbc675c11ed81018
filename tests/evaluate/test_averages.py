from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.errors import IsoglotError
from isoglot.evaluate.averages import averages, headline, subset
from isoglot.results import Score


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


def test_a_named_subset():
    scores = [score("en", 0.8), score("ja", 0.1), score("de", 0.6)]
    (found,) = averages(scores, subset("ppa-xnli"))
    assert set(found.languages) == {"en", "de"}
    with pytest.raises(IsoglotError, match="did you mean 'xnli'"):
        subset("xnly")


def test_f1_and_exact_match_are_averaged_in_the_tasks_one_number():
    scores = [score("en", 0.8, metric="f1"), score("en", 0.6, metric="exact")]
    found = headline(averages(scores))["xnli"]
    assert found.metric == "f1/exact"
    assert found.mean == pytest.approx(0.7)


def test_f1_alone_is_not_mixed_with_its_parts():
    scores = [score("en", 0.8, metric=m) for m in ("f1", "precision", "recall")]
    assert headline(averages(scores))["xnli"].metric == "f1"


def test_of_several_layers_the_best_one_is_the_headline():
    scores = [score("en-de", value, layer=i) for i, value in enumerate((0.1, 0.7, 0.3))]
    assert headline(averages(scores))["xnli"].layer == 1


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
