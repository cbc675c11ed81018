"""Figures and tables of a page show the numbers of their files."""

from __future__ import annotations

import re

import pytest

from isoglot.exhibits import Space
from isoglot.report import ReportError, named
from isoglot.report.board import gather
from isoglot.report.corpora import ALPHAS, corpora
from isoglot.report.inputs import by_name
from isoglot.report.latex import latex
from isoglot.report.layers import layer_figures
from isoglot.report.markdown import markdown
from isoglot.report.page import collect, page
from isoglot.report.space import space_svg
from isoglot.report.table import Heading, Number, Table
from isoglot.report.training import runs_of, training_figures, training_table
from isoglot.results import Results, Score
from tests.report.made_up import write_model


def test_shares_of_a_corpus_are_those_of_its_manifest(corpus):
    manifest = corpus.manifest
    found = {shares.kind: shares for shares in corpora([named(f"mine={corpus.folder}")])}
    assert set(found) == {"text", "pairs"}
    rows = {
        language: splits["train"].rows
        for source in manifest.sources.values()
        if source.kind == "pairs"
        for language, splits in source.languages.items()
    }
    pairs = found["pairs"].languages
    assert {one.language: one.sentences for one in pairs} == rows
    assert sum(one.share for one in pairs) == pytest.approx(1)
    for number, alpha in enumerate(ALPHAS):
        total = sum(size**alpha for size in rows.values())
        for one in pairs:
            assert one.drawn[number] == pytest.approx(rows[one.language] ** alpha / total)
    html = page(collect([named(f"mine={corpus.folder}")]), title="T")
    assert "mine: pairs" in html


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
    yield {"step": len(filled), "valid/mlm/mean perplexity": 7.0, "valid/mlm/de perplexity": 1.0}


def test_the_table_of_runs_has_packing_speed_and_held_out_means(run):
    folder = run("a", steps([90, 80, 100, 70]))
    (folder / "recipe.yaml").write_text("batch: {rows: 2, row_length: 50}\n", encoding="utf-8")
    table = training_table(runs_of(by_name([named(str(folder))])))
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
    with pytest.raises(ReportError, match=r"recipe.yaml: does not say the rows"):
        runs_of(by_name([named(str(folder))]))


def test_a_metric_of_one_moment_is_no_curve(run):
    runs = runs_of(by_name([named(str(run("a", steps([90, 80, 100]))))]))
    figures = dict(training_figures(runs, {"a": 3}))
    assert list(figures) == ["mlm/loss", "tokens_per_second"]
    assert 'class="line k3"' in figures["mlm/loss"]
    assert training_table({}) is None


def test_layers_are_drawn_in_per_cent_at_their_heights():
    scores = tuple(
        Score(task="t", version=1, language=code, metric="m", value=value, count=1, layer=layer)
        for layer, values in enumerate([(0.0, 0.2), (0.4, 0.6), (0.8, 1.0)])
        for code, value in zip(("en-de", "en-sw"), values, strict=True)
    )
    board = gather({"a": [Results(model="m", fingerprint="f", scores=scores)]})
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
    space = Space(layer=1, method="", points={"de": ((0.0, 0.0), (4.0, 0.0)), "en": ((4.0, 2.0),)})
    figure = space_svg(space, {"de": 0, "en": 1})
    dots = [(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h0", figure)]
    (left, top), (right, _), (_, bottom) = dots
    assert right - left == pytest.approx(2 * (bottom - top), abs=1)
    assert all(0 <= place <= 1000 for dot in dots for place in dot)
    crowd = tuple((float(n), float(n % 7)) for n in range(20_000))
    many = space_svg(Space(layer=1, method="", points={"de": crowd}), {"de": 0})
    assert 4000 < many.count("h0") <= 6000


def test_the_nearest_word_of_each_row_is_marked(tmp_path):
    folder = write_model(
        tmp_path / "a", 1, languages=["de", "en"], tasks=["xnli"], seeds=1, steps=20
    )
    material = collect([named(str(folder))])
    grid = material.exhibits["a"].grids[0]
    html = page(material, title="T")
    part = html[html.index('<table class="grid">') :]
    rows = re.findall(r'<tr><th scope="row">([^<]*)</th>(.*?)</tr>', part[: part.index("</table>")])
    assert [word for word, _ in rows] == list(grid.first)
    for (_, cells), cosines in zip(rows, grid.cosines, strict=True):
        marks = [mark == "•" for mark in re.findall(r"<td[^>]*>(•?)</td>", cells)]
        assert marks.index(True) == cosines.index(max(cosines))
        assert sum(marks) == 1


def test_marks_of_the_best_and_of_the_partial_in_text_and_tex():
    numbers = (Number(value=1.0, best=True, sd=0.25), Number(value=2.0, partial=True), Number())
    columns = tuple(Heading(text=name, note="F1 ↓") for name in "xyz")
    table = Table(
        title="t", caption="c", corner="m", columns=columns, rows=((Heading(text="r"), numbers),)
    )
    assert r"| r | **1.0** ± 0.2 | 2.0\* |  |" in markdown([table])
    assert r"r & \textbf{1.0} $\pm$ 0.2 & 2.0* & -- \\" in latex([table])
    assert r"m & x & y & z \\" in latex([table])
    assert r"& \scriptsize F1 $\downarrow$ \\" in latex([table])
