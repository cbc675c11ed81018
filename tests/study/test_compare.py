from __future__ import annotations

import pytest

from isoglot.results import Score
from isoglot.study import compare, markdown


def scores(task, table, *, higher=True, metric="accuracy"):
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
            scenario="zero-shot from en, xtreme",
        )
        for seed, row in enumerate(table)
        for code, value in row.items()
    ]


def test_a_row_is_compared_with_the_first_seed_by_seed_and_cell_by_cell():
    first = scores("xnli", [{"en": 0.8, "sw": 0.4}, {"en": 0.9, "sw": 0.5}])
    second = scores("xnli", [{"en": 0.9, "sw": 0.5}, {"en": 1.0, "sw": 0.6}])
    one, other = compare({"a": first, "b": second})
    assert one.against_first is None
    assert other.against_first is not None
    assert other.against_first.mean == pytest.approx(0.1)
    assert other.against_first.p < 0.01
    assert (one.mean, other.mean) == pytest.approx((0.65, 0.75))
    assert one.tasks["xnli"].gap == pytest.approx(0.4)


def test_tasks_count_alike_however_many_languages_they_have():
    many = scores("xnli", [{"en": 0.0, "de": 0.0, "sw": 0.0}])
    few = scores("paws-x", [{"en": 1.0}])
    (row,) = compare({"a": [*many, *few]})
    assert row.mean == pytest.approx(0.5)


def test_where_less_is_better_a_lower_score_is_a_gain():
    first = scores("alignment", [{"en-de": 0.3}], higher=False, metric="aer")
    second = scores("alignment", [{"en-de": 0.1}], higher=False, metric="aer")
    _, other = compare({"a": first, "b": second})
    assert other.against_first is not None
    assert other.against_first.mean == pytest.approx(0.2)


def test_the_table_has_a_line_a_recipe_and_says_what_was_drawn():
    table = [{"en": 0.8, "sw": 0.4}, {"en": 0.9, "sw": 0.5}]
    text = markdown(compare({"a": scores("xnli", table), "b": scores("xnli", table)}))
    heading, rule, first, second, *_ = text.splitlines()
    assert heading.split(" | ")[1] == "xnli"
    assert rule.count("---") == heading.count(" | ") + 1
    assert first.startswith("| a | 65.0 ± 7.1 (gap 40.0) | 65.0 ± 7.1 |  |  | 2 |")
    assert second.startswith("| b |")
    assert "+0.0 (+0.0 to +0.0)" in second
    assert "not over test examples" in text
