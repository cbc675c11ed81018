"""The page in a real browser: what a user clicks, and what must never happen."""

from __future__ import annotations

from tests.explore.conftest import ARABIC, HOSTILE


def test_neighbours_of_a_sentence(page, session):
    first, _ = session.pairs["aa-bb"]
    page.get_by_label("Sentence", exact=True).fill(first[0])
    page.get_by_role("button", name="Search").click()
    row = page.locator("#neighbours-first tbody tr").first
    row.wait_for()
    assert first[0] in row.inner_text()
    assert "1.000" in row.inner_text()
    assert page.locator("#neighbours-second tbody tr").count() == 10


def test_html_in_sentences_is_text(page):
    page.get_by_label("Sentence", exact=True).fill(HOSTILE)
    page.get_by_role("button", name="Search").click()
    row = page.locator("#neighbours-first tbody tr").first
    row.wait_for()
    assert HOSTILE in row.inner_text()
    assert page.locator("#neighbours-first script, #neighbours-first img").count() == 0


def test_an_error_is_a_sentence(page):
    page.get_by_role("button", name="Search").click()
    page.get_by_text("Type a sentence first.").wait_for()


def test_arabic_runs_from_right_to_left(page):
    page.get_by_label("Sentence", exact=True).fill(f"{ARABIC} 3")
    page.get_by_role("button", name="Search").click()
    found = page.locator("#neighbours-first tbody bdi").first
    found.wait_for()
    assert found.inner_text() == f"{ARABIC} 3"
    assert found.evaluate("one => getComputedStyle(one).direction") == "rtl"
