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
    assert shown == pytest.approx(
        {"steps": 0.004, "tokens": 0.00034, "packing": 85, "speed": 2, "mlm": 7}
    )
    (folder / "recipe.yaml").write_text("batch: {rows: two}\n", encoding="utf-8")
    with pytest.raises(ReportError, match=r"recipe.yaml: has no batch.rows"):
        read_runs(group_by_name([parse_named_folder(str(folder))]))


def test_a_metric_of_one_moment_is_no_curve(run):
    runs = read_runs(group_by_name([parse_named_folder(str(run("a", steps([90, 80, 100]))))]))
    figures = dict(training_figures(runs, {"a": 3}))
    assert list(figures) == ["mlm/loss", "tokens_per_second"]
    assert 'class="line k3"' in figures["mlm/loss"]
    assert training_table({}) is None
