"""The page of an adaptation: what got worse first, in all tables, curves by language."""

from __future__ import annotations

import json
import re

import pytest

from isoglot.adaptation.choices import Decision
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.page import adapt_page, change_and_interval, terminal_rows, verdict
from isoglot.adaptation.plan_files import AdaptPlan
from isoglot.recipe import load_prepare, load_recipe
from isoglot.report.training import heldout_figures
from tests.adaptation.small import SmallData, small_config
from tests.adaptation.test_export import SCORES
from tests.report.browser import assert_fits, chromium, needs_browser, opened


@pytest.fixture
def folder(tmp_path) -> AdaptFolder:
    """The folder of an adaptation that has been trained."""
    out = tmp_path / "out"
    (out / "run").mkdir(parents=True)
    (out / "model").mkdir()
    # every tenth step is recorded; a command that continued has not trained all of them
    records = [{"step": 10, "seconds": 3.0, "mlm/loss": 3.0, "tokens": 8}]
    for step, value in ((10, 9.0), (20, 6.0)):
        found = {f"valid/mlm/{code}/perplexity": value for code in ("en", "no", "mean")}
        records.append({"step": step, **found, "valid/moco/en-no/chance": 0.1})
    records.append({"step": 20, "seconds": 5.0, "mlm/loss": 2.5, "tokens": 8})
    records.append({"step": 20, "valid/parallel/en-no/retrieval": 0.5})
    text = "\n".join(map(json.dumps, records)) + "\n"
    (out / "run/metrics.jsonl").write_text(text, encoding="utf-8")
    return AdaptFolder(out)


@pytest.fixture
def page(folder, tmp_path) -> str:
    (tmp_path / "prepare.yaml").write_text("sources: {}\n")
    plan = AdaptPlan(
        decisions=(Decision(topic="steps", choice="20 steps", reason="<b>few</b> lines"),),
        prepare=load_prepare(tmp_path / "prepare.yaml"),
        recipe=load_recipe("tiny"),
        new_words=0,
        disk_bytes=1,
        edited=("recipe.yaml",),
    )
    config = small_config(SmallData(tmp_path / "raw", tmp_path / "models/mine"))
    return adapt_page(config, plan, folder, SCORES)


def test_what_got_worse_is_the_first_thing_on_the_page(page):
    main = page[page.index("<main>") :]
    text = re.sub(r"<[^>]+>", " ", main)
    words = " ".join(text.split())
    assert words.startswith(
        "1 of 6 scores got worse , 3 got better: en: bits per character +2.0 % (+0.7 to +3.3)"
    )
    assert main.index(">worse</td>") < main.index(">better</td>")


def test_every_score_has_before_after_change_and_interval(page):
    for cells in ("<td>4.000</td><td>2.000</td>", "-50.0 %<small>-55.0 to -45.0</small>"):
        assert cells in page
    assert "no clear change" in page
    assert "unchanged" in page
    assert "800 before, 1,200 after" in page


def test_curves_are_by_language_and_need_two_points(folder):
    figures = dict(heldout_figures(folder.run))
    assert list(figures) == ["held-out perplexity, mlm"], "one retrieval is no curve"
    assert ">en<" in figures["held-out perplexity, mlm"]
    assert ">mean<" not in figures["held-out perplexity, mlm"]


def test_plan_choices_time_and_files_are_named(page):
    assert "&lt;b&gt;few&lt;/b&gt; lines" in page, "text of a plan is no HTML"
    assert "Edited by hand since: recipe.yaml." in page
    assert "Training took 1 min 20 s: 20 steps of 4 s, validation and checkpoints apart." in page
    assert "70 development pairs" in page
    assert "<code>model</code>" in page
    assert "<code>corpus</code>" not in page, "a folder that is not there"


def test_an_adaptation_without_metrics_has_no_curves(tmp_path):
    assert heldout_figures(tmp_path) == []


@needs_browser
def test_the_page_fits_a_phone_and_asks_for_nothing(page, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    with chromium() as browser:
        for width, scheme in ((400, "light"), (1280, "dark")):
            with opened(browser, file, width=width, scheme=scheme) as shown:
                assert_fits(shown)
                assert shown.get_by_role("button", name="Save PNG").count() == 1
                with shown.expect_download() as download:
                    shown.get_by_role("button", name="Save CSV").first.click()
                assert download.value.suggested_filename == "bits-per-character.csv"
                rows = download.value.path().read_text("utf-8").splitlines()
                assert rows[1] == "en,1.500,1.530,+2.0 %,'+0.7 to +3.3,100,worse"
                assert "<b>few</b> lines" in shown.locator("#plan").inner_text()


def test_rows_that_are_printed():
    rows = list(terminal_rows(SCORES))
    assert rows[2] == (
        "retrieval", "en→no", "10.0 %", "60.0 %", "+50.0 points (+40.0 to +60.0)", "better"
    )  # fmt: skip
    assert rows[4][-1] == "no clear change"
    assert rows[5][-2:] == ("0", "unchanged")
    assert rows[-1] == (
        "sentences per second",
        "",
        "800",
        "1,200",
        "no interval: other programs change it",
        "",
    )
    assert change_and_interval(SCORES.comparisons[1]) == "-50.0 % (-55.0 to -45.0)"
    assert verdict(SCORES.comparisons[1]) == "better"
