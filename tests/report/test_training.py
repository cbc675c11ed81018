"""The table and the curves of training runs show the numbers of their metrics."""

from __future__ import annotations

import pytest

from isoglot.report.inputs import ReportError, group_by_name, parse_named_folder
from isoglot.report.training import read_runs, training_figures, training_table


def steps(filled: list[int]):
    total = 0
    for step, tokens in enumerate(filled, start=1):
        total += tokens
        yield {
            "step": step,
            "mlm/loss": 1.0 / step,
            "tokens": tokens,
            "total_tokens": total,
            "tokens_per_second": 2000.0,
        }
    yield {"step": len(filled), "valid/mlm/mean/perplexity": 7.0, "valid/mlm/de/perplexity": 1.0}


def test_the_table_of_runs_has_packing_speed_and_held_out_means(run):
    folder = run("a", steps([90, 80, 100, 70]))
    (folder / "recipe.yaml").write_text("batch: {rows: 2, row_length: 50}\n", encoding="utf-8")
    table = training_table(read_runs(group_by_name([parse_named_folder(str(folder))])))
    assert table is not None
    ((head, numbers),) = table.rows
    shown = {
        column.text: number.value for column, number in zip(table.columns, numbers, strict=True)
    }
    assert head.text == "a"
    assert shown == pytest.approx({"steps": 4, "tokens": 340, "packing": 85, "speed": 2, "mlm": 7})
    assert [column.note for column in table.columns[:2]] == ["", ""], "short runs are not 0.0"
    long = run("b", steps([90] * 2000))
    both = [parse_named_folder(str(one)) for one in (folder, long)]
    table = training_table(read_runs(group_by_name(both)))
    assert table is not None
    assert [column.note for column in table.columns[:2]] == ["thousands", "thousands"]
    assert [numbers[1].value for _, numbers in table.rows] == [0.34, 180.0]
    (folder / "recipe.yaml").write_text("batch: {rows: two}\n", encoding="utf-8")
    with pytest.raises(ReportError, match=r"recipe.yaml: has no batch.rows"):
        read_runs(group_by_name([parse_named_folder(str(folder))]))


def test_a_metric_of_one_moment_is_no_curve(run):
    runs = read_runs(group_by_name([parse_named_folder(str(run("a", steps([90, 80, 100]))))]))
    figures = dict(training_figures(runs, {"a": 3}))
    assert list(figures) == ["mlm/loss", "tokens_per_second"]
    assert 'class="line k3"' in figures["mlm/loss"]
    assert training_table({}) is None


def test_shares_are_percent(run):
    """A retrieval of 1 % was printed as 0.0 in a table with one decimal."""
    last = {
        "step": 3,
        "valid/parallel/mean/retrieval": 0.013,
        "valid/entity/mean/accuracy": 0.5,
        "valid/entity/mean/chance": 0.02,
    }
    folder = run("a", [*steps([90, 80, 100]), last])
    table = training_table(read_runs(group_by_name([parse_named_folder(str(folder))])))
    assert table is not None
    ((_, numbers),) = table.rows
    shown = {c.note: n.value for c, n in zip(table.columns, numbers, strict=True)}
    assert shown["held-out retrieval, %"] == pytest.approx(1.3)
    assert shown["held-out accuracy, %"] == pytest.approx(50)
    assert shown["held-out chance, %"] == pytest.approx(2)
    assert shown["held-out perplexity"] == 7
