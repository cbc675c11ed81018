"""The tabs Alignment, Masks and Errors in a real browser."""

from __future__ import annotations

import pytest

from isoglot.alignment.align import pharaoh
from isoglot.explore.word_links import find_words, link_words
from tests.explore.conftest import ARABIC, CHINESE, HOSTILE

pytestmark = pytest.mark.slow


def click_tab(page, name):
    page.get_by_role("tab", name=name).click()


def align(page, first, second):
    click_tab(page, "Alignment")
    page.locator("#align-first textarea").fill(first)
    page.locator("#align-second textarea").fill(second)
    page.locator("#align-ask").click()
    page.locator("#align-figure-first svg.ig-links").wait_for()


def test_words_are_joined_by_the_links_of_each_model(page, session):
    first, second = session.pairs["aa-bb"][0][0], session.pairs["aa-bb"][1][0]
    align(page, first, second)
    words = find_words(first).words, find_words(second).words
    for place, model in zip(("first", "second"), session.models, strict=True):
        expected = pharaoh(link_words(model, words, aligner="itermax").links)
        assert page.locator(f"#align-links-{place} textarea").input_value() == expected
        lines = page.locator(f"#align-figure-{place} svg.ig-links line")
        drawn = lines.evaluate_all("all => all.map((one) => one.dataset.link)")
        assert " ".join(drawn) == expected


def test_layer_and_aligner_draw_again(page, session):
    first, second = session.pairs["aa-bb"][0][1], session.pairs["aa-bb"][1][1]
    align(page, first, second)
    words = find_words(first).words, find_words(second).words
    page.locator("#align-layer input[type=number]").fill("0")
    page.locator("#align-layer input[type=number]").press("Tab")
    page.get_by_text("links at layer 0").first.wait_for()
    shown = page.locator("#align-links-first textarea").input_value()
    model = session.models[0]
    assert shown == pharaoh(link_words(model, words, aligner="itermax", layer=0).links)


def test_arabic_and_chinese_words(page):
    align(page, ARABIC, CHINESE)
    texts = page.locator("#align-figure-first svg.ig-links > text")
    shown = texts.evaluate_all(
        "all => all.map((one) => [one.textContent, getComputedStyle(one).direction])"
    )
    assert [one for one, way in shown if way == "rtl"] == ARABIC.split()
    assert [one for one, way in shown if way == "ltr"] == find_words(CHINESE).words
    assert "红色" in find_words(CHINESE).words
    # the edges of the columns are the same, whatever the direction
    right = texts.evaluate_all("all => all.map((one) => one.getBBox().x + one.getBBox().width)")
    number = len(ARABIC.split())
    assert max(right[:number]) - min(right[:number]) < 1


def test_html_in_words_is_text(page):
    align(page, HOSTILE, "x" * 100_000)
    inside = page.locator("#align-figure-first")
    assert inside.locator("script, img").count() == 0
    assert "<script>" in inside.locator("svg.ig-links").text_content()
    assert len(inside.inner_html()) < 50_000


def fill(page, lines):
    click_tab(page, "Masks")
    page.locator("#masks-lines textarea").fill(lines)
    page.locator("#masks-ask").click()
    page.locator("#masks-first .ig-candidates").first.wait_for()


def test_blanks_of_several_languages_with_and_without_a_translation(page, session):
    first, second = session.pairs["aa-bb"][0][0], session.pairs["aa-bb"][1][0]
    hidden = first.replace(first.split()[1], "___", 1)
    fill(page, f"{hidden} ||| {second}\nar: {ARABIC.split()[0]} ___ \n{HOSTILE} ___")
    for place in ("first", "second"):
        side = page.locator(f"#masks-{place}")
        assert side.locator(".ig-cloze").count() == 3
        assert side.locator(".ig-way").count() == 3 + 1 + 1
        assert side.locator(".ig-candidates li").count() == 5 * 5
        assert side.locator("script, img").count() == 0
        assert HOSTILE in side.inner_text()
    headings = page.locator("#masks-first .ig-way h4").all_inner_texts()[:3]
    assert headings == ["alone", "with translation", "translation alone"]


def test_a_line_without_a_blank_is_an_error(page):
    click_tab(page, "Masks")
    page.locator("#masks-lines textarea").fill("no blank")
    page.locator("#masks-ask").click()
    page.get_by_text("Line 1 has no blank").wait_for()


def test_random_pairs(page):
    click_tab(page, "Masks")
    page.locator("#masks-random").click()
    page.locator("#masks-first .ig-candidates").first.wait_for()
    assert "___" in page.locator("#masks-lines textarea").input_value()
    click_tab(page, "Alignment")
    page.locator("#align-random").click()
    page.locator("#align-figure-first svg.ig-links").wait_for()


def test_a_link_opens_an_error(page, served, session):
    from isoglot.explore.mistakes import retrieval_mistakes

    found = retrieval_mistakes(session.models[0], "ar-zh", session.pairs["ar-zh"]).mistakes
    one = found[0]
    page.goto(f"{served.address}?tab=errors&task=retrieval&language=ar-zh&item={one.item}")
    row = page.locator("#errors-list table[aria-label=linked] tbody tr").first
    row.wait_for()
    assert row.is_visible()
    cells = row.locator("td").all_inner_texts()
    assert cells[0] == str(one.item)
    assert one.chosen in cells[4]
    listed = page.locator("#errors-list table[aria-label=mistakes] tbody tr")
    assert listed.count() == len(found)
    assert page.get_by_role("tab", name="Errors").get_attribute("aria-selected") == "true"


def test_errors_are_filtered_and_turned(page, session):
    from isoglot.explore.mistakes import retrieval_mistakes

    click_tab(page, "Errors")
    rows = page.locator("#errors-list tbody tr")
    rows.first.wait_for()
    number = len(retrieval_mistakes(session.models[0], "aa-bb", session.pairs["aa-bb"]).mistakes)
    assert number > 50
    assert rows.count() == 50
    page.locator("#errors-next").click()
    page.get_by_text(f"51 to {min(100, number)} of {number} shown").wait_for()
    page.locator("#errors-previous").click()
    page.get_by_text(f"1 to 50 of {number} shown").wait_for()
    assert page.locator("#errors-list script, #errors-list img").count() == 0
    page.get_by_label("Direction").click()
    page.get_by_role("option", name="bb→aa").click()
    page.wait_for_function(
        "[...document.querySelectorAll('#errors-list tbody tr td:nth-child(2)')]"
        ".every((one) => one.textContent === 'bb→aa')"
    )
