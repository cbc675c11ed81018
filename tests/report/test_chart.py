"""Bands around lines."""

from __future__ import annotations

import re

from isoglot.report.chart import Chart, Line, chart_svg


def test_a_band_of_speeds_does_not_fall_below_zero():
    speeds = Line.of_repetitions("a", 0, [(1, [10.0, 400.0]), (2, [200.0, 220.0])])
    assert speeds.spread[0] > speeds.points[0][1], "one standard deviation reaches below 0"
    (low, high), (second, _) = speeds.band()
    assert low == 0.0
    assert high == speeds.points[0][1] + speeds.spread[0]
    assert second == speeds.points[1][1] - speeds.spread[1] > 0
    svg = chart_svg(Chart(lines=(speeds,), x_label="steps", y_label="tokens/s"))
    assert not re.search(r">-\d", svg), "no tick below 0"


def test_a_band_of_values_of_both_signs_does():
    line = Line(label="a", color=0, points=((1, 0.5), (2, -0.5)), spread=(1.0, 1.0))
    assert line.band() == [(-0.5, 1.5), (-1.5, 0.5)]
    alone = Line(label="a", color=0, points=((1, 0.5),))
    assert alone.band() == [(0.5, 0.5)]


def test_a_band_on_a_logarithmic_axis():
    line = Line(label="a", color=0, points=((1, 1.0), (2, 10.0)), spread=(3.0, 1.0))
    svg = chart_svg(Chart(lines=(line,), x_label="x", y_label="y", log=True))
    assert "nan" not in svg
