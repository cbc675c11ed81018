"""The report in Chromium: width, requests, names of any kind, saving figures and tables."""

from __future__ import annotations

import csv
import json
import re
import struct
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from isoglot.intervals import pack_outcomes
from isoglot.report.export import draw_png, find_browser
from isoglot.report.inputs import NamedFolder, parse_named_folder
from isoglot.report.page import read_report_data, report_figures, report_page
from isoglot.results import Results
from tests.report.browser import assert_fits, chromium, needs_browser, opened
from tests.report.generated_runs import LANGUAGES, TASKS, write_model

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_browser, pytest.mark.slow]
HOSTILE = [
    "mlm",
    "<script>alert('name')</script><img src=x onerror=alert(1)>",
    "=cmd|'/c calc'!A1 \"quoted\" & 'single'",
    "x" * 100_000,
    "نموذج عربي متعدد اللغات",
    "一个名字很长的多语言编码器模型",
]


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    """A report whose models, tasks, languages, metrics and notes have hostile names."""
    folder = tmp_path_factory.mktemp("report")
    inputs = []
    for number, name in enumerate(HOSTILE):
        run = write_model(
            folder / f"run{number}", number, languages=["ar", "de", "en", "zh"],
            tasks=["xnli", "tatoeba", "xling"], seeds=2, steps=40,
        )  # fmt: skip
        _spoil(run, number)
        inputs.append(NamedFolder(name, run))
    data = read_report_data(inputs)
    file = folder / "report.html"
    page = report_page(data, title="<b>Report</b> </title><script>alert(2)</script>")
    file.write_text(page, encoding="utf-8")
    return file


def _spoil(run: Path, seed: int) -> None:
    """Add scores of hostile names and with outcomes to a run."""
    results = Results.read(run / "results.json")
    rng = np.random.default_rng(seed)
    first = replace(results.scores[0], scenario=None, seed=None)
    added = [
        replace(first, task="my.tasks:<svg onload=alert(3)>", language="<i>sw</i>"),
        replace(first, task="long", language="y" * 100_000, metric="z" * 100_000),
        *(
            replace(
                first, task="errors", language=code, data="d", value=0.5, count=50,
                outcomes=pack_outcomes(rng.random((1, 50)) < 0.5),
            )
            for code in ("ar", "zh_Hant")
        ),
    ]  # fmt: skip
    replace(results, scores=(*results.scores, *added)).write(run / "results.json")
    records = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    spoiled = [
        {**json.loads(line), "</svg><script>alert(4)</script>/loss": 1.0} for line in records
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in spoiled), "utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_fits_and_asks_for_nothing(browser, page_file, width, scheme):
    with opened(browser, page_file, width=width, scheme=scheme) as page:
        assert_fits(page)
        boxes = page.evaluate(
            "[...document.querySelectorAll('.wide')].map((b) => b.getBoundingClientRect().right)"
        )
        assert max(boxes) <= width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}[scheme]


@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1280])
def test_many_tasks_and_languages_fit(browser, tmp_path, width):
    folders = [
        write_model(tmp_path / f"a-model-with-a-long-name-{n}", n, languages=LANGUAGES[:12],
                    tasks=TASKS[-8:], seeds=2, steps=20)
        for n in range(3)
    ]  # fmt: skip
    data = read_report_data([parse_named_folder(str(folder)) for folder in folders])
    file = tmp_path / "page.html"
    file.write_text(report_page(data, title="T"), encoding="utf-8")
    with opened(browser, file, width=width) as page:
        assert_fits(page)


def test_names_are_shown_as_text(browser, page_file):
    with opened(browser, page_file, width=1280) as page:
        rows = page.locator("#overview tbody th").all_text_contents()
        shown = [name if len(name) < 120 else f"{name[:119]}…" for name in HOSTILE]
        assert sorted(rows) == sorted(shown)
        assert page.locator("h1").text_content() == (
            "<b>Report</b> </title><script>alert(2)</script>"
        )
        assert page.get_by_text("<i>sw</i>", exact=True).count() > 0
        assert page.locator(f"#overview th bdi:text-is('{HOSTILE[4]}')").count() == 1
        assert page.locator("script").count() == 1, "the page's own"
        assert page.locator("img").count() == 0


def test_links_open_the_explorer_at_an_error(browser, page_file):
    with opened(browser, page_file, width=1280) as page:
        links = page.locator("#errors a")
        found = [links.nth(n).get_attribute("href") or "" for n in range(links.count())]
    address = "http://127.0.0.1:7860/?tab=errors&task=errors&language=zh_Hant"
    assert address in found
    items = [url for url in found if url.startswith(f"{address}&item=")]
    assert len(items) == 5
    assert "http://127.0.0.1:7860/?tab=errors&task=xling&language=en-de" in found
    assert not any(url.startswith("http://127.0.0.1:7860/?tab=errors&task=xling") and "item" in url
                   for url in found), "no outcomes, so no examples"  # fmt: skip
    worst = page_outcomes(page_file.parent)
    assert [int(url.rpartition("=")[2]) for url in items] == worst


def page_outcomes(folder: Path) -> list[int]:
    """The five examples that most models get wrong, the first where equal: counted one by one."""
    wrong = dict.fromkeys(range(50), 0)
    for number in range(len(HOSTILE)):
        rng = np.random.default_rng(number)
        rng.random((1, 50))
        for item, value in enumerate(rng.random((1, 50))[0]):
            wrong[item] += not value < 0.5
    return sorted(sorted(wrong, key=lambda item: (-wrong[item], item))[:5])


def test_figures_and_tables_are_saved(browser, page_file, tmp_path):
    with opened(browser, page_file, width=1280) as page:

        def saved(place: str, label: str) -> Path:
            with page.expect_download() as download:
                page.locator(place).get_by_role("button", name=label).first.click()
            file: Path = tmp_path / download.value.suggested_filename
            download.value.save_as(file)
            return file

        figures = page.locator("figure > svg").count()
        assert page.get_by_role("button", name="Save SVG").count() == figures > 0
        assert page.get_by_role("button", name="Save PNG").count() == figures
        tables = page.locator("table").count()
        assert page.locator(".save button", has_text="Save CSV").count() == tables
        svg = saved("#training", "Save SVG").read_text("utf-8")
        picture = saved("#training", "Save PNG").read_bytes()
        rows = list(csv.reader(saved("#overview", "Save CSV").read_text("utf-8").splitlines()))
    ET.fromstring(svg)  # noqa: S314, it is the page's own
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    sides = re.search(r' width="(\d+)" height="(\d+)"', svg)
    assert sides is not None
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture[16:24])
    assert (width, height) == (2 * int(sides[1]), 2 * int(sides[2]))
    assert len(rows) == 1 + len(HOSTILE)
    assert len({len(row) for row in rows}) == 1
    names = {row[0] for row in rows}
    assert f"'{HOSTILE[2]}" in names, "no formula for a spreadsheet"
    assert HOSTILE[1] in names


def test_a_browser_draws_every_figure_as_png(page_file):
    assert find_browser() is not None
    data = read_report_data([parse_named_folder(str(page_file.parent / "run0"))])
    figures = [figure for _, figure in report_figures(data)]
    pictures = draw_png(figures)
    assert len(pictures) == len(figures) > 3
    for figure, picture in zip(figures, pictures, strict=True):
        box = figure.partition('viewBox="0 0 ')[2].partition('"')[0].split()
        assert struct.unpack(">II", picture[16:24]) == tuple(2 * int(side) for side in box)
    assert len(set(pictures)) == len(pictures)
