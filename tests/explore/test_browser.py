"""The page in a real browser: what a user clicks, and what must never happen."""

from __future__ import annotations

import pytest

from isoglot.explore.app import TABS
from tests.explore.conftest import ARABIC, CHINESE, HOSTILE, open_tab

pytestmark = pytest.mark.slow


def test_neighbors_of_a_sentence(page, session):
    first, _ = session.pairs["aa-bb"]
    page.get_by_label("Sentence", exact=True).fill(first[0])
    page.get_by_role("button", name="Search").click()
    row = page.locator("#neighbors-first tbody tr").first
    row.wait_for()
    assert first[0] in row.inner_text()
    assert "1.000" in row.inner_text()
    assert page.locator("#neighbors-second tbody tr").count() == 10


def test_html_in_sentences_is_text(page):
    page.get_by_label("Sentence", exact=True).fill(HOSTILE)
    page.get_by_role("button", name="Search").click()
    row = page.locator("#neighbors-first tbody tr").first
    row.wait_for()
    assert HOSTILE in row.inner_text()
    assert page.locator("#neighbors-first script, #neighbors-first img").count() == 0


def test_an_error_is_a_sentence(page):
    page.get_by_role("button", name="Search").click()
    page.get_by_text("Type a sentence first.").wait_for()


def test_arabic_runs_from_right_to_left(page):
    page.get_by_label("Sentence", exact=True).fill(f"{ARABIC} 3")
    page.get_by_role("button", name="Search").click()
    found = page.locator("#neighbors-first tbody bdi").first
    found.wait_for()
    assert found.inner_text() == f"{ARABIC} 3"
    assert found.evaluate("one => getComputedStyle(one).direction") == "rtl"


def test_the_map_shows_texts_of_points(page):
    page.get_by_role("tab", name="Map").click()
    page.get_by_role("button", name="Draw").click()
    points = page.locator("#map-first circle")
    points.first.wait_for()
    assert points.count() == page.locator("#map-second circle").count() == 2 * (62 + 8)
    tip, point = (
        page.locator(".ig-tip"),
        page.locator('#map-first circle[data-language="ar"]').first,
    )
    point.hover(force=True)
    # hovering may scroll the page, which hides the text until the pointer moves again
    page.wait_for_timeout(500)
    box = point.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 + 1, box["y"] + box["height"] / 2)
    tip.wait_for()
    assert ARABIC in tip.inner_text()
    assert CHINESE in tip.inner_text()  # its translation


def test_the_layer_of_the_map(page):
    page.get_by_role("tab", name="Map").click()
    page.get_by_role("button", name="Draw").click()
    page.locator("#map-first").get_by_text("layer 2 of 2").wait_for()
    page.locator("#map-layer input[type=range]").press("ArrowLeft")
    page.locator("#map-first").get_by_text("layer 1 of 2").wait_for()


@pytest.mark.parametrize("tab", [title for title, _ in TABS])
def test_a_phone_needs_no_scrolling_sideways(page, session, tab):
    page.set_viewport_size({"width": 400, "height": 800})
    open_tab(page, tab)
    if tab == "Neighbors":
        page.get_by_label("Sentence", exact=True).fill("x" * 300)
        page.get_by_role("button", name="Search").click()
        page.locator("#neighbors-first tbody tr").first.wait_for()
    if tab == "Map":
        page.get_by_role("button", name="Draw").click()
        page.locator("#map-first circle").first.wait_for()
    if tab == "Alignment":
        page.locator("#align-first textarea").fill("x" * 300 + " word" * 90)
        page.locator("#align-second textarea").fill("y" * 300 + " word" * 90)
        page.locator("#align-ask").click()
        page.locator("#align-figure-first svg.ig-links").wait_for()
    if tab == "Masks":
        page.locator("#masks-lines textarea").fill(f"___ {'x' * 50} ||| {'y' * 50}")
        page.locator("#masks-ask").click()
        page.locator("#masks-first .ig-candidates").first.wait_for()
    if tab == "Errors":
        page.locator("#errors-list tbody tr").first.wait_for()
    wide, shown = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= shown


def test_two_models_are_side_by_side_or_below_each_other(page, session):
    page.get_by_label("Sentence", exact=True).fill(session.pairs["aa-bb"][0][0])
    page.get_by_role("button", name="Search").click()
    sides = [page.locator(f"#neighbors-{place} table") for place in ("first", "second")]
    sides[1].wait_for()
    left, right = (side.bounding_box() for side in sides)
    assert left["x"] + left["width"] <= right["x"]
    page.set_viewport_size({"width": 400, "height": 800})
    above, below = (side.bounding_box() for side in sides)
    assert above["y"] + above["height"] <= below["y"]
    assert above["width"] > 300


def test_random_sentence_is_asked_for(page):
    page.get_by_role("button", name="Random sentence").click()
    page.locator("#neighbors-first tbody tr").first.wait_for()
    assert page.get_by_label("Sentence", exact=True).input_value()


def test_words_of_a_dictionary(page):
    page.get_by_role("tab", name="Map").click()
    page.get_by_label("Draw", exact=True).click()
    page.get_by_role("option", name="words").click()
    page.get_by_label("cc").wait_for(state="detached")  # the dictionary has aa and bb
    page.get_by_role("button", name="Draw").click()
    page.locator("#map-first").get_by_text("240 words").wait_for()
    page.get_by_role("slider", name="Layer").press("Home")
    page.locator("#map-first").get_by_text("the embedding table").wait_for()
