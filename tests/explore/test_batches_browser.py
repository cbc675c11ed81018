"""The tab of batches in a real browser."""

from __future__ import annotations

import pytest

from isoglot.explore.batches import BatchBrowser, BatchRequest, sequence_names
from tests.explore.conftest import open_tab

pytestmark = pytest.mark.slow


def _open(page) -> None:
    page.get_by_role("tab", name="Batches").click()
    page.get_by_role("button", name="Show batch").wait_for()


def _show(page) -> None:
    page.get_by_role("button", name="Show batch").click()
    page.locator("#batches-rows .ig-b-row").first.wait_for()


def test_rows_of_a_recipe(page, corpus):
    _open(page)
    _show(page)
    row = BatchBrowser(corpus).drawn(BatchRequest(recipe="tiny")).rows[0]
    tokens = [token for one in row.sequences for token in one.tokens]
    shown = page.locator("#batches-rows .ig-b-row .ig-b-t")
    assert shown.count() == len(tokens)
    assert page.locator("#batches-mask svg path").count() == len(row.sequences[0].tokens)
    page.get_by_role("combobox", name="Mask of").click()
    page.get_by_role("option", name="the whole row").click()
    page.locator(f"#batches-mask svg[aria-label*='{row.title}']").wait_for()
    page.wait_for_function(
        f"document.querySelectorAll('#batches-mask svg path').length == {row.length}"
    )


def test_another_row_and_positions(page, corpus):
    _open(page)
    _show(page)
    page.get_by_role("combobox", name="Row").click()
    page.get_by_role("option", name="row 1", exact=True).click()
    page.locator("#batches-rows h4", has_text="row 1:").wait_for()
    page.get_by_label("Positions").check()
    page.locator("#batches-rows .ig-b-t i").first.wait_for()
    row = BatchBrowser(corpus).drawn(BatchRequest(recipe="tiny")).rows[1]
    positions = [str(token.position) for one in row.sequences for token in one.tokens]
    assert page.locator("#batches-rows .ig-b-t i").all_inner_texts() == positions


def test_a_row_with_other_sequences(page, corpus):
    """Its masks have other names: the one shown before is no error, and further rows open, too."""
    rows = BatchBrowser(corpus).drawn(BatchRequest(recipe="tiny")).rows
    names = [sequence_names(row) for row in rows]
    other = next(number for number, one in enumerate(names) if names[0][1] not in one)
    _open(page)
    _show(page)
    for number in (other, 0):
        page.get_by_role("combobox", name="Row").click()
        page.get_by_role("option", name=f"row {number}", exact=True).click()
        page.locator("#batches-rows h4", has_text=f"row {number}:").wait_for()
        page.wait_for_timeout(500)
        assert page.locator(".toast-body").count() == 0
        assert page.get_by_role("combobox", name="Mask of").input_value() == names[number][1]


def test_settings_and_errors(page):
    _open(page)
    page.get_by_label("Settings, one on each line").fill("objectives.mlm.masking.rate=2")
    page.get_by_role("button", name="Show batch").click()
    page.get_by_text("objectives.mlm.masking.rate").first.wait_for()
    page.get_by_label("Settings, one on each line").fill("batch.row_length=32")
    _show(page)
    assert "32 tokens" in page.locator("#batches-rows h4").inner_text()


def test_a_phone_shows_it_without_scrolling_sideways(page):
    page.set_viewport_size({"width": 400, "height": 800})
    page.emulate_media(color_scheme="dark")
    open_tab(page, "Batches")
    _show(page)
    page.locator("#batches-mask svg").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
