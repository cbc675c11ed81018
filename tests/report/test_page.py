"""The page shows the content of its folders, stays small and narrow, and is self-contained."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from isoglot.report.corpus_stats import ALPHAS, sampling_shares
from isoglot.report.explorer_links import EXPLORER
from isoglot.report.inputs import ReportError, parse_named_folder
from isoglot.report.page import read_report_data, report_page, report_tables
from isoglot.report.tables import MAX_COLUMNS, to_latex, to_markdown
from isoglot.results import Results, Score
from isoglot.visualizations import FILE, Visualizations
from tests.report.generated_runs import LANGUAGES, TASKS, write_model

if TYPE_CHECKING:
    from pathlib import Path

VOID = {"meta", "rect", "br", "circle"}


class Outline(HTMLParser):
    "Counts elements, keeps the widths of report_tables, and notes what is left open."

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.targets: set[str] = set()
        self.widths: list[int] = []
        self.addresses: list[str] = []
        self.feed(html)

    @override
    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found["id"]} if "id" in found else set()
        self.addresses += [v for k, v in attrs if k in {"href", "src"} and v is not None]
        if tag == "tr":
            self.widths.append(0)
        if tag in {"td", "th"}:
            self.widths[-1] += 1
        if tag not in VOID:
            self.open.append(tag)

    @override
    def handle_startendtag(self, tag, attrs):
        pass

    @override
    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> Path:
    return write_model(
        tmp_path_factory.mktemp("one") / "mlm",
        1,
        languages=["de", "en", "sw"],
        tasks=["xnli", "tatoeba", "alignment"],
        seeds=2,
        steps=40,
    )


def html_of(*folders: object) -> str:
    return report_page(
        read_report_data([parse_named_folder(str(folder)) for folder in folders]), title="T"
    )


def test_a_single_results_file_makes_a_page_of_its_parts_alone(tmp_path):
    scored = Score(task="xnli", version=1, language="sw", metric="accuracy", value=0.5, count=10)
    Results(model="m", fingerprint="f", scores=(scored,)).write(tmp_path / "mlm-seed1.json")
    html = html_of(tmp_path / "mlm-seed1.json")
    assert Outline(html).ids == {"theme", "overview", "heat", "scores", "errors", "models"}
    assert 'title="accuracy, 10 examples"' in html


def test_a_model_without_scores_is_named_and_nothing_else(tmp_path):
    Results(model="m", fingerprint="f", scores=()).write(tmp_path / "results.json")
    assert Outline(html_of(tmp_path)).ids == {"theme", "models"}


def test_every_part_is_there_and_every_link_leads_to_one(one):
    outline = Outline(html_of(one))
    assert outline.open == []
    parts = {"overview", "heat", "gaps", "layers", "scores", "errors", "training", "space", "words",
             "models"}  # fmt: skip
    assert outline.ids == parts | {"theme"}
    places = {address.lstrip("#") for address in outline.addresses if address.startswith("#")}
    assert places == parts


def test_numbers_are_those_of_the_results(one):
    html = html_of(one)
    content = Results.read(one / "results.json")
    found = [s for s in content.scores if (s.task, s.language) == ("xnli", "sw")]
    values = [score.value for score in found]
    mean, sd = sum(values) / 2, abs(values[0] - values[1]) / 2**0.5
    note = f"accuracy, {found[0].count:,} examples, 2 repetitions"
    assert f'title="{note}">{100 * mean:.1f}<small>±{100 * sd:.1f}</small></td>' in html


def test_metrics_of_a_task_are_folded_into_one_table(tmp_path):
    """Analogies have a metric for each section, in the embedding table and at every layer."""
    metrics = ["accuracy", *(f"accuracy section-{n}" for n in range(14))]
    scores = [
        Score(
            task="analogy", version=1, language=code, count=9, value=0.5, layer=layer,
            metric=metric if layer is not None else f"{metric} table",
        )
        for code in ("de", "en")
        for metric in metrics
        for layer in (None, 0, 1, 2)
    ]  # fmt: skip
    Results(model="m", fingerprint="f", scores=tuple(scores)).write(tmp_path / "results.json")
    html = html_of(tmp_path)
    assert html.count('<table class="numbers') == 4, "overview, heat map, the task, other metrics"
    assert html.count("<svg") == 1, "layers of the metric that tables show"
    assert all(metric in html for metric in metrics)
    assert len(report_tables(read_report_data([parse_named_folder(str(tmp_path))]))) == 3


def test_names_cannot_break_the_page(one, tmp_path):
    bad = '<script>alert("x")</script>&'
    html = html_of(f"{bad}={one}")
    assert "<script>alert" not in html
    assert Outline(html).open == []


@pytest.mark.parametrize(
    ("models", "tasks", "seeds"),
    [(2, 3, 1), pytest.param(20, 15, 2, marks=pytest.mark.slow)],
)
def test_many_models_tasks_and_forty_languages_stay_small_and_narrow(
    tmp_path, models, tasks, seeds
):
    folders = [
        write_model(
            tmp_path / f"model-number-{n}",
            n,
            languages=LANGUAGES,
            tasks=TASKS[-tasks:],
            seeds=seeds,
            steps=200,
        )
        for n in range(models)
    ]
    html = html_of(*folders)
    assert len(html.encode()) < 4_000_000  # the promise is 5 MB; longer names need room, too
    outline = Outline(html)
    assert outline.open == []
    # at 1280 pixels, twenty columns of numbers beside the names fit (looked at in a browser)
    assert MAX_COLUMNS // 2 < max(outline.widths) <= MAX_COLUMNS + 1
    assert "nowrap" not in re.sub(r"\.(ramp|grid)[^}]*}", "", html.partition("</style>")[0])
    # nothing is fetched: every address is a place on the page, or a link to the explorer
    assert all(address.startswith(("#", EXPLORER)) for address in outline.addresses)
    elsewhere = set(re.findall(r"https?://[^\s\"'<)?]+|url\(|@import", html))
    assert elsewhere == {"http://www.w3.org/2000/svg", EXPLORER}  # the first is a name


def test_every_table_scrolls_by_itself_on_a_phone(one):
    html = html_of(one)
    assert html.count("<table") == html.count('<div class="wide"><table') > 5
    assert html.count("</table></div>") == html.count("</table>")
    style = html.partition("</style>")[0]
    assert ".wide{overflow-x:auto;position:relative}" in style


def test_words_of_dictionaries_have_a_map_of_their_own(one, tmp_path):
    folder = tmp_path / "mlm"
    shutil.copytree(one, folder)
    shown = Visualizations.read(folder / FILE)
    assert shown.sentence_map is not None
    words = replace(shown.sentence_map, layer=None, method="PCA to 3 dimensions, then t-SNE")
    replace(shown, word_map=words).write(folder / FILE)
    html = html_of(folder)
    assert {"space", "wordspace"} <= Outline(html).ids
    section = html[html.index('id="wordspace"') :]
    assert "Each dot is a word" in section
    assert "embedding table, PCA to 3 dimensions" in section


def test_an_empty_folder_is_refused(tmp_path):
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ReportError, match=r"nothing has no results.json, metrics.jsonl"):
        read_report_data([parse_named_folder(str(tmp_path / "nothing"))])


def test_a_report_imports_no_torch(one, tmp_path):
    code = (
        "import sys; from isoglot.cli import main; import isoglot.report.page\n"
        f"sys.argv = ['isoglot', 'report', {str(one)!r}, '-o', {str(tmp_path / 'r.html')!r}]\n"
        "try:\n    main()\nfinally:\n    assert not {'torch', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_damaged_exhibits_are_named(one, tmp_path):
    content = json.loads((one / FILE).read_text(encoding="utf-8"))
    del content["sentence_map"]["layer"]
    (tmp_path / FILE).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"json: is damaged \(.*layer"):
        read_report_data([parse_named_folder(str(tmp_path))])


def test_shares_of_a_corpus_are_those_of_its_manifest(corpus):
    manifest = corpus.manifest
    shares = list(sampling_shares(manifest, ALPHAS))
    assert {share.kind for share in shares} == {"text", "pairs"}
    rows = {
        language: splits["train"].rows
        for source in manifest.sources.values()
        if source.kind == "pairs"
        for language, splits in source.languages.items()
    }
    pairs = [share for share in shares if share.kind == "pairs"]
    assert {one.language: one.sentences for one in pairs} == rows
    assert sum(one.share for one in pairs) == pytest.approx(1)
    assert sum(one.token_share for one in pairs) == pytest.approx(1)
    for number, alpha in enumerate(ALPHAS):
        total = sum(size**alpha for size in rows.values())
        for one in pairs:
            assert one.drawn[number] == pytest.approx(rows[one.language] ** alpha / total)
    html = report_page(read_report_data([parse_named_folder(f"mine={corpus.folder}")]), title="T")
    assert "mine: pairs" in html


def test_markdown_and_latex_have_the_same_numbers_and_escape(one):
    material = read_report_data([parse_named_folder(f"a_b|c={one}")])
    found = report_tables(material)
    text, tex = to_markdown(found), to_latex(found)
    assert r"| a\_b\|c |" in text
    assert r"a\_b|c &" in tex
    numbers = [
        f"{n.value:.1f}" for t in found for _, ns in t.rows for n in ns if n.value is not None
    ]
    for written in (text, tex):
        rest = iter(re.findall(r"-?\d+\.\d", written))
        assert all(number in rest for number in numbers)
    assert tex.count(r"\begin{tabular}") == len(found) == text.count("| --- |")
    for line in tex.splitlines():
        if line.endswith(r"\\"):
            assert "±" not in line
