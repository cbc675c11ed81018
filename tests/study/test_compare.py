from __future__ import annotations

import pytest

from isoglot.results import ResultsError, Score
from isoglot.study.compare import compare, markdown


def scores(
    task,
    table,
    *,
    higher=True,
    metric="accuracy",
    layer=None,
    scenario="zero-shot from en, xtreme",
):
    """Scores by seed and language."""
    return [
        Score(
            task=task,
            version=1,
            language=code,
            metric=metric,
            value=value,
            count=10,
            seed=seed,
            higher_is_better=higher,
            scenario=scenario,
            layer=layer,
        )
        for seed, row in enumerate(table)
        for code, value in row.items()
    ]


def test_a_row_is_compared_with_the_first_seed_by_seed_and_cell_by_cell():
    first = scores("xnli", [{"en": 0.8, "sw": 0.4}, {"en": 0.9, "sw": 0.5}])
    second = scores("xnli", [{"en": 0.9, "sw": 0.5}, {"en": 1.0, "sw": 0.6}])
    one, other = compare({"a": first, "b": second})
    assert one.difference is None
    assert other.difference is not None
    assert other.difference.mean == pytest.approx(0.1)
    assert other.difference.p is None, "four pairs"
    assert (one.mean, other.mean) == pytest.approx((0.65, 0.75))
    assert one.tasks["xnli"].gap == pytest.approx(0.4)


def test_tasks_count_alike_however_many_languages_they_have():
    many = scores("xnli", [{"en": 0.0, "de": 0.0, "sw": 0.0}])
    few = scores("paws-x", [{"en": 1.0}])
    (row,) = compare({"a": [*many, *few]})
    assert row.mean == pytest.approx(0.5)


def test_the_difference_is_that_of_the_means():
    first = dict.fromkeys("abcdefghij", 0.5)
    second = dict.fromkeys("abcdefghij", 0.6)
    one, other = compare(
        {
            "a": [*scores("xnli", [first, first]), *scores("paws-x", [{"en": 0.5}, {"en": 0.6}])],
            "b": [*scores("xnli", [second, first]), *scores("paws-x", [{"en": 0.3}, {"en": 0.3}])],
        }
    )
    assert other.difference is not None
    assert other.difference.mean == pytest.approx(other.mean - one.mean)
    assert other.mean < one.mean


def test_all_rows_are_read_at_one_layer_and_in_one_scenario():
    def row(low, high, scenario="x"):
        return [
            *scores("tatoeba", [{"de-en": low}], metric="accuracy@1", layer=1, scenario=scenario),
            *scores("tatoeba", [{"de-en": high}], metric="accuracy@1", layer=2, scenario=scenario),
        ]

    rows = compare({"a": row(0.7, 0.2), "b": row(0.6, 0.65)})
    assert [row.tasks["tatoeba"].layer for row in rows] == [1, 1]
    assert rows[1].difference is not None
    assert rows[1].difference.mean == pytest.approx(-0.1)
    assert "tatoeba: accuracy@1 at layer 1" in markdown(rows)
    rows = compare(
        {
            "a": [*row(0.5, 0.5), *row(0.9, 0.9, "y")],
            "b": [*row(0.8, 0.8), *row(0.1, 0.1, "y")],
        }
    )
    assert {row.tasks["tatoeba"].scenario for row in rows} == {"x"}


def test_rows_that_share_no_score_are_not_compared():
    with pytest.raises(ResultsError, match="a, b have no task, language and seed"):
        compare({"a": scores("xnli", [{"en": 0.5}]), "b": []})


def test_questions_count_by_both_metrics_and_pairs_of_languages_not_at_all():
    table = [{"en": 0.8, "de": 0.6, "en-de": 0.0}]
    exact = [{"en": 0.6, "de": 0.4, "en-de": 0.0}]
    (row,) = compare(
        {"a": [*scores("mlqa", table, metric="f1"), *scores("mlqa", exact, metric="exact")]}
    )
    assert row.mean == row.tasks["mlqa"].mean == pytest.approx(0.6)


def test_where_less_is_better_a_lower_score_is_a_gain():
    first = scores("alignment", [{"en-de": 0.3}], higher=False, metric="aer")
    second = scores("alignment", [{"en-de": 0.1}], higher=False, metric="aer")
    _, other = compare({"a": first, "b": second})
    assert other.difference is not None
    assert other.difference.mean == pytest.approx(0.2)


def test_the_table_has_a_line_a_recipe_and_says_what_was_drawn():
    table = [{"en": 0.8, "sw": 0.4}, {"en": 0.9, "sw": 0.5}]
    text = markdown(compare({"a": scores("xnli", table), "b": scores("xnli", table)}))
    heading, rule, first, second, *_ = text.splitlines()
    assert heading.split(" | ")[1] == "xnli"
    assert rule.count("---") == heading.count(" | ") + 1
    assert first.startswith("| a | 65.0 ± 7.1 (gap 40.0) | 65.0 ± 7.1 |  |  | 2 |")
    assert second.startswith("| b |")
    assert second.endswith("| +0.0 | – | 2 |")
    assert "not over test examples" in text


def test_a_p_is_never_printed_as_nothing():
    low = {f"l{number}": 0.5 for number in range(20)}
    high = dict.fromkeys(low, 0.6)
    text = markdown(compare({"a": scores("xnli", [low]), "b": scores("xnli", [high])}))
    assert "| +10.0 (+10.0 to +10.0) | < 0.001 | 1 |" in text
