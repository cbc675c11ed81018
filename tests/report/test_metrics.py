"""Figures show the numbers of the metrics files, at their places."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.report.chart import format_tick, linear_ticks, log_ticks
from isoglot.report.inputs import NamedFolder, ReportError, parse_named_folder
from isoglot.report.metrics import MetricPoint, RunMetrics, mean_line, plot_metric, smooth

PERPLEXITY = "valid/btmlm/mean/perplexity"


def records(values, *, tokens=100):
    """A step record before every validation, as a run writes them."""
    for number, value in enumerate(values, start=1):
        step = 10 * number
        yield {"step": step, "stage": 0, "btmlm/loss": value / 2, "total_tokens": tokens * step}
        yield {"step": step, PERPLEXITY: value}


def marks(figure: str) -> dict[str, list[tuple[float, float]]]:
    """Class of a line -> the places of its points."""
    found: dict[str, list[tuple[float, float]]] = {}
    for element in ET.fromstring(figure).iter(  # noqa: S314 (our own)
        "{http://www.w3.org/2000/svg}circle"
    ):
        kind = element.attrib["class"].split()[1]
        found.setdefault(kind, []).append(
            (float(element.attrib["cx"]), float(element.attrib["cy"]))
        )
    return found


def test_four_rates_make_four_lines_in_order(run):
    rates = {"5 %": 1.0, "10 %": 0.9, "15 %": 0.8, "20 %": 0.7}
    runs = [
        NamedFolder(name, run(name, records(factor * v for v in (100, 60, 40, 30, 25))))
        for name, factor in rates.items()
    ]
    figure = plot_metric(runs, PERPLEXITY, title="BTMLM <held out>")
    lines = marks(figure)
    assert [len(points) for points in lines.values()] == [5, 5, 5, 5]
    # a lower perplexity lies lower on the page, at every step
    for higher, lower in pairwise(lines.values()):
        assert all(a[0] == b[0] and a[1] < b[1] for a, b in zip(higher, lower, strict=True))
    labels = re.findall(r">([^<>]+)</text>", figure)
    assert [label for label in labels if label.endswith("%")] == list(rates)
    assert "BTMLM &lt;held out&gt;" in figure


@pytest.mark.parametrize("log", [False, True])
def test_places_are_proportional_to_the_numbers(run, log):
    values = (8.0, 4.0, 2.0, 1.0) if log else (4.0, 3.0, 2.0, 1.0)
    (points,) = marks(
        plot_metric([NamedFolder("a", run("a", records(values)))], PERPLEXITY, log=log)
    ).values()
    for axis in (0, 1):
        steps = [b[axis] - a[axis] for a, b in pairwise(points)]
        assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
        assert abs(steps[0]) > 50


def test_validations_lie_at_the_tokens_of_their_step(run):
    (line,) = [
        mean_line(
            "a", [RunMetrics(run("a", records((3, 2, 1)))).series(PERPLEXITY)], x_axis="tokens"
        )
    ]
    assert line.points == ((1000, 3.0), (2000, 2.0), (3000, 1.0))
    assert line.spread == ()


def test_repetitions_are_a_mean_and_a_band(run):
    first, second = (
        run(f"x-seed{n}", records(values)) for n, values in enumerate([(4, 2), (8, 2)])
    )
    inputs = [parse_named_folder(str(first)), parse_named_folder(str(second))]
    assert [found.name for found in inputs] == ["x", "x"]
    line = mean_line("x", [RunMetrics(i.path).series(PERPLEXITY) for i in inputs], x_axis="steps")
    assert line.points == ((10, 6.0), (20, 2.0))
    assert line.spread == pytest.approx((8**0.5, 0.0))
    assert 'class="band k0"' in plot_metric(inputs, PERPLEXITY)


def test_smoothing_joins_repetitions_that_were_noted_at_different_steps():
    odd = [MetricPoint(step, 10 * step, float(step)) for step in (1, 3, 5, 7)]
    even = [MetricPoint(step, 10 * step, float(step)) for step in (2, 4, 6, 8)]
    with pytest.raises(ReportError, match="no step in common"):
        mean_line("a", [odd, even], x_axis="steps")
    line = mean_line("a", [smooth(odd, 4), smooth(even, 4)], x_axis="steps")
    assert line.points == ((2, 2.5), (6, 6.5))


def test_what_cannot_be_drawn_is_said(run, tmp_path):
    folder = run("a", records((1, 0)))
    with pytest.raises(ReportError, match=r"has no 'btmlm/los': did you mean 'btmlm/loss'\?"):
        plot_metric([NamedFolder("a", folder)], "btmlm/los")
    with pytest.raises(ReportError, match="Leave out --log"):
        plot_metric([NamedFolder("a", folder)], PERPLEXITY, log=True)
    with pytest.raises(ReportError, match="does not exist"):
        parse_named_folder(str(tmp_path / "b"))
    with pytest.raises(ReportError, match=r"metrics.jsonl does not exist"):
        RunMetrics(tmp_path)


def test_a_damaged_line_is_named_unless_it_is_the_last(run):
    folder = run("a", records((3, 2)))
    file = folder / "metrics.jsonl"
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole + '{"step": 30, "btm', encoding="utf-8")
    assert len(RunMetrics(folder).series(PERPLEXITY)) == 2
    file.write_text(whole[:20] + "\n" + whole, encoding="utf-8")
    with pytest.raises(ReportError, match=r"metrics.jsonl, line 1: is not a record"):
        RunMetrics(folder)


def test_numbers_that_are_not_finite_are_left_out(run):
    folder = run("a", records((3, float("nan"), float("inf"), 2)))
    assert [point.value for point in RunMetrics(folder).series(PERPLEXITY)] == [3, 2]


@given(
    low=st.floats(-1e6, 1e6, allow_subnormal=False),
    span=st.floats(1e-3, 1e6, allow_subnormal=False),
)
def test_linear_ticks_are_few_even_and_inside(low, span):
    ticks = linear_ticks(low, low + span)
    assert 1 <= len(ticks) <= 7
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)
    steps = [b - a for a, b in pairwise(ticks)]
    assert steps == pytest.approx(steps[:1] * len(steps), rel=1e-3)


@given(low=st.floats(1e-6, 1e6), factor=st.floats(1.2, 1e9))
def test_log_ticks_are_few_and_inside(low, factor):
    ticks = log_ticks(low, low * factor)
    assert 1 <= len(ticks) <= 9
    assert all(low * (1 - 1e-9) <= tick <= low * factor * (1 + 1e-9) for tick in ticks)


def test_numbers_on_axes_are_short():
    assert [format_tick(v) for v in (0, 0.25, 1600, 12_000, 3.5e6, 2e9)] == [
        "0",
        "0.25",
        "1600",
        "12k",
        "3.5M",
        "2B",
    ]
