"""Figures of the page show the numbers of their files."""

from __future__ import annotations

import re

import pytest

from isoglot.report.figures import layer_figures, sentence_map
from isoglot.report.inputs import parse_named_folder
from isoglot.report.leaderboard import build_leaderboard
from isoglot.report.page import read_report_data, report_page
from isoglot.results import Results, Score
from isoglot.visualizations import SentenceMap
from tests.report.generated_runs import write_model


def test_layers_are_drawn_in_per_cent_at_their_heights():
    scores = tuple(
        Score(task="t", version=1, language=code, metric="m", value=value, count=1, layer=layer)
        for layer, values in enumerate([(0.0, 0.2), (0.4, 0.6), (0.8, 1.0)])
        for code, value in zip(("en-de", "en-sw"), values, strict=True)
    )
    board = build_leaderboard({"a": [Results(model="m", fingerprint="f", scores=scores)]})
    ((title, figure),) = layer_figures(board, {"a": 0})
    assert title == "t: m by layer"
    heights = [float(y) for y in re.findall(r'<circle[^>]* cy="([\d.]+)"', figure)]
    ticks = {
        int(label): float(y) - 4
        for y, label in re.findall(r'y="([\d.]+)" text-anchor="end"[^>]*>(\d+)<', figure)
    }
    # the axis is linear: the means 10, 50 and 90 lie where the ticks say
    (low, high) = min(ticks), max(ticks)
    slope = (ticks[high] - ticks[low]) / (high - low)
    expected = [ticks[low] + slope * (value - low) for value in (10, 50, 90)]
    assert heights == pytest.approx(expected, abs=0.3)


def test_a_map_keeps_proportions_and_thins_what_is_too_much():
    space = SentenceMap(
        layer=1, method="", points={"de": ((0.0, 0.0), (4.0, 0.0)), "en": ((4.0, 2.0),)}
    )
    figure = sentence_map(space, {"de": 0, "en": 1})
    dots = [(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h0", figure)]
    (left, top), (right, _), (_, bottom) = dots
    assert right - left == pytest.approx(2 * (bottom - top), abs=1)
    assert all(0 <= place <= 1000 for dot in dots for place in dot)
    crowd = tuple((float(n), float(n % 7)) for n in range(20_000))
    many = sentence_map(SentenceMap(layer=1, method="", points={"de": crowd}), {"de": 0})
    assert 4000 < many.count("h0") <= 6000


def test_the_nearest_word_of_each_row_is_marked(tmp_path):
    folder = write_model(
        tmp_path / "a", 1, languages=["de", "en"], tasks=["xnli"], seeds=1, steps=20
    )
    material = read_report_data([parse_named_folder(str(folder))])
    grid = material.visualizations["a"].grids[0]
    html = report_page(material, title="T")
    part = html[html.index('<table class="grid">') :]
    rows = re.findall(
        r'<tr><th scope="row" lang="en">([^<]*)</th>(.*?)</tr>',
        part[: part.index("</table>")],
    )
    assert [word for word, _ in rows] == list(grid.first)
    for (_, cells), cosines in zip(rows, grid.cosines, strict=True):
        marks = [mark == "•" for mark in re.findall(r"<td[^>]*>(•?)</td>", cells)]
        assert marks.index(True) == cosines.index(max(cosines))
        assert sum(marks) == 1
