"""The findings as HTML: one file that needs no other, and fits a phone."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.claims.findings import Findings
from benchmarks.claims.forest import FOR, NEITHER, WIDTH, Row, forest_svg
from benchmarks.claims.html_page import html_page, paragraphs
from benchmarks.claims.table import read_table
from typing_extensions import override

from tests.report.browser import assert_fits, chromium, needs_browser, opened

if TYPE_CHECKING:
    from pathlib import Path

TABLE = read_table()


def every_cell() -> dict[str, Any]:
    """Three seeds of every arm."""
    found = {}
    for (number, arm), seed in product(enumerate(TABLE.arms), range(3)):
        of = {
            score: 40 + (number * 7 % 11) + 0.3 * seed * (number % 3)
            for score, kind in TABLE.scores.items()
            if kind.translation == TABLE.arms[arm].is_translation
        }
        details = {"questions chance": 45.0}
        cell = {"arm": arm, "seed": seed, "start": "w", "scores": of, "development": of}
        found[f"{arm}-{seed}"] = cell | {"details": details}
    return found


ABOUT = {
    "checkpoints": {
        "multilingual": {
            "fingerprint": "abc",
            "steps": 2000,
            "tokens": 122_000_000,
            "heldout_losses": {"en": 3.0, "de": 4.0},
        }
    },
    "steps": 400,
    "device": "a GPU",
    "torch": "2.11",
}


def page(cells: dict[str, Any]) -> str:
    return html_page(Findings(cells, ABOUT), date="2026-11-30")


def test_the_page_has_every_claim_verdict_difference_and_arm() -> None:
    findings, html = Findings(every_cell(), ABOUT), page(every_cell())
    text = re.sub(r"<[^>]+>", " ", html).replace("&gt;", ">").replace("&lt;", "<")
    for claim in TABLE.claims:
        for told in (claim.claim, claim.change, claim.differs, *claim.tests):
            assert told.replace("'", "&#39;") in text
        verdict = findings.verdict(claim)
        assert re.search(rf'<span class="verdict \w+">{verdict}</span>', html)
    for arm in TABLE.arms:
        assert f'<th scope="row">{arm}<small>' in html
    for kind in TABLE.scores.values():
        assert f"<figcaption>{kind.label}, {kind.unit}</figcaption>" in html
    assert "held-out loss 3.500" in text
    assert "2026-11-30, isoglot" in text
    assert "chance 45.0" in text


def test_the_page_without_results_says_so() -> None:
    html = html_page(Findings({}, {}), date="2026-11-30")
    assert f"<b>{len(TABLE.claims)}</b> still" in html
    assert "<figure>" not in html


def test_tags_are_closed_and_nothing_is_loaded() -> None:
    opened_tags: list[str] = []
    empty = {"meta", "br", "path", "circle", "rect", "input", "i"}

    class Reader(HTMLParser):
        @override
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert not {"src", "href"} & {name for name, value in attrs if "://" in (value or "")}
            if tag not in empty:
                opened_tags.append(tag)

        @override
        def handle_endtag(self, tag: str) -> None:
            if tag not in empty:
                assert opened_tags.pop() == tag

    Reader().feed(page(every_cell()))
    assert opened_tags == []


def test_a_forest_plot_draws_numbers_at_their_places() -> None:
    rows = [
        Row(label="a > b", mean=2.0, interval=(1.0, 3.0), sign=1),
        Row(label="<c>", mean=0.0, interval=(-1.0, 1.0), sign=0),
    ]
    svg = forest_svg(rows, "title")
    places = [float(x) for x in re.findall(r'cx="([\d.]+)"', svg)]
    axis = float(re.search(r'class="axis" d="M([\d.]+) ', svg)[1])  # type: ignore[index]
    unit = (WIDTH - 32) / 4
    assert places == pytest.approx([axis + 2 * unit, axis], abs=0.1)
    assert "&lt;c&gt;" in svg
    assert svg.count(f"k{FOR}") == 2, "line and filled dot"
    assert svg.count(f"k{NEITHER}") == 1, "a hollow dot"
    assert forest_svg([Row(label="", mean=0.0, interval=(0.0, 0.0), sign=0)], "")


def test_paragraphs_of_markdown() -> None:
    told = list(paragraphs("A *cell* is `a > b`,\n**bold** 6 * 4.\n\nB & C"))
    assert told == ["A <i>cell</i> is <code>a &gt; b</code>, <b>bold</b> 6 * 4.", "B &amp; C"]


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_and_a_screen(tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "findings.html"
    file.write_text(page(every_cell()), encoding="utf-8")
    with chromium() as browser:
        for width in (400, 1280):
            with opened(browser, file, width=width, scheme=scheme) as shown:
                assert_fits(shown)
