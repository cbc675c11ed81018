from __future__ import annotations

import pytest

from isoglot.results import ResultsError, Score
from isoglot.study.compare import compare, holm, markdown


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


def _rows(by_name):
    return compare(by_name).rows


def test_a_row_is_compared_with_the_first_seed_by_seed_and_cell_by_cell():
    first = scores("xnli", [{"en": 0.8, "sw": 0.4}, {"en": 0.9, "sw": 0.5}])
    second = scores("xnli", [{"en": 0.9, "sw": 0.5}, {"en": 1.0, "sw": 0.6}])
    table = compare({"a": first, "b": second})
    one, other = table.rows
    (found,) = table.comparisons
    assert (found.baseline, found.name, found.task) == ("a", "b", "xnli")
    assert found.difference.mean == pytest.approx(0.1)
    assert (one.mean, other.mean) == pytest.approx((0.65, 0.75))
    assert one.tasks["xnli"].gap == pytest.approx(0.4)


def test_one_or_two_seeds_give_no_p_and_three_do():
    languages = [f"l{number}" for number in range(12)]
    for seeds, tested in ((1, False), (2, False), (3, True)):
        first = scores("xnli", [dict.fromkeys(languages, 0.5)] * seeds)
        second = scores("xnli", [dict.fromkeys(languages, 0.6)] * seeds)
        table = compare({"a": first, "b": second})
        (found,) = table.comparisons
        assert (found.difference.p is not None) is tested
        assert (found.difference.low is not None) is tested
        assert ("use --seeds 3" in markdown(table)) is not tested


def test_each_task_has_a_test_of_its_own():
    languages = [f"l{number}" for number in range(6)]
    low, high = dict.fromkeys(languages, 0.5), dict.fromkeys(languages, 0.6)
    table = compare(
        {
            "a": [*scores("xnli", [low] * 3), *scores("paws-x", [high] * 3)],
            "b": [*scores("xnli", [high] * 3), *scores("paws-x", [low] * 3)],
        }
    )
    found = {one.task: one for one in table.comparisons}
    assert found["xnli"].difference.mean == pytest.approx(0.1)
    assert found["paws-x"].difference.mean == pytest.approx(-0.1)
    assert table.rows[0].mean == pytest.approx(table.rows[1].mean)
    assert all((one.adjusted_p or 1) < 0.01 for one in found.values())


def test_the_baseline_is_chosen_or_all_pairs_are_compared():
    values = {"a": 0.1, "b": 0.2, "c": 0.4}
    by_name = {name: scores("xnli", [{"en": value}]) for name, value in values.items()}

    def pairs(baseline=None):
        return [
            (one.baseline, one.name, round(one.difference.mean, 1))
            for one in compare(by_name, baseline).comparisons
        ]

    assert pairs() == [("a", "b", 0.1), ("a", "c", 0.3)]
    assert pairs("b") == [("b", "a", -0.1), ("b", "c", 0.2)]
    assert pairs("all") == [("a", "b", 0.1), ("a", "c", 0.3), ("b", "c", 0.2)]


def test_holms_correction():
    # the smallest of m is multiplied by m, the next by m - 1; the order is kept
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]
    assert holm([]) == []


def test_tasks_count_alike_however_many_languages_they_have():
    many = scores("xnli", [{"en": 0.0, "de": 0.0, "sw": 0.0}])
    few = scores("paws-x", [{"en": 1.0}])
    (row,) = _rows({"a": [*many, *few]})
    assert row.mean == pytest.approx(0.5)


def test_all_rows_are_read_at_one_layer_and_in_one_scenario():
    def row(low, high, scenario="x"):
        return [
            *scores("tatoeba", [{"de-en": low}], metric="accuracy@1", layer=1, scenario=scenario),
            *scores("tatoeba", [{"de-en": high}], metric="accuracy@1", layer=2, scenario=scenario),
        ]

    table = compare({"a": row(0.7, 0.2), "b": row(0.6, 0.65)})
    assert [row.tasks["tatoeba"].layer for row in table.rows] == [2, 2], "the last, not the best"
    assert table.comparisons[0].difference.mean == pytest.approx(0.45)
    assert "tatoeba: accuracy@1 at layer 2" in markdown(table)
    rows = _rows(
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
    (row,) = _rows(
        {"a": [*scores("mlqa", table, metric="f1"), *scores("mlqa", exact, metric="exact")]}
    )
    assert row.mean == row.tasks["mlqa"].mean == pytest.approx(0.6)


def test_where_less_is_better_a_lower_score_is_a_gain():
    first = scores("alignment", [{"en-de": 0.3}], higher=False, metric="aer")
    second = scores("alignment", [{"en-de": 0.1}], higher=False, metric="aer")
    (found,) = compare({"a": first, "b": second}).comparisons
    assert found.difference.mean == pytest.approx(0.2)


def test_the_table_has_a_line_a_recipe_and_says_what_was_drawn():
    table = [{"en": 0.8, "sw": 0.4}, {"en": 0.9, "sw": 0.5}]
    text = markdown(compare({"a": scores("xnli", table), "b": scores("xnli", table)}))
    heading, rule, first, second, *_ = text.splitlines()
    assert heading.split(" | ")[1] == "xnli"
    assert rule.count("---") == heading.count(" | ") + 1
    assert first == "| a | 65.0 ± 7.1 (gap 40.0) | 65.0 ± 7.1 | 2 |"
    assert second.startswith("| b |")
    assert "| b | a | xnli | +0.0 | – | – |" in text
    assert "not over test examples" in text
    assert "The gap is the source language's score" in text
    assert "layer" not in text
    alignment = scores("alignment", [{"en-de": 0.3}], higher=False, metric="aer")
    assert "gap" not in markdown(compare({"a": alignment, "b": alignment}))


def test_a_p_is_never_printed_as_nothing():
    low = {f"l{number}": 0.5 for number in range(20)}
    high = dict.fromkeys(low, 0.6)
    text = markdown(compare({"a": scores("xnli", [low] * 3), "b": scores("xnli", [high] * 3)}))
    assert "| b | a | xnli | +10.0 (+10.0 to +10.0) | < 0.001 | < 0.001 |" in text
