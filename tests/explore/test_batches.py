"""The tab of batches without a browser: HTML of rows, hostile text, requests that are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console
from typing_extensions import override

from isoglot.errors import IsoglotError
from isoglot.explore.batch_html import PALETTE, batch_html, counts, is_right_to_left
from isoglot.explore.batch_page import batch_page, row_lines
from isoglot.explore.batch_svg import sequence_block
from isoglot.explore.batches import (
    BatchBrowser,
    BatchRequest,
    find_row,
    mask_html,
    parse_settings,
    row_names,
    sequence_names,
    summary_html,
)
from isoglot.explore.drawn_batch import DrawnBatch, DrawnSequence, DrawnToken
from isoglot.explore.stage_batches import fitting_recipes, open_stage
from isoglot.explore.svg_figure import Figure
from isoglot.explore.token_texts import TokenTexts
from isoglot.recipe import load_recipe, recipe_names
from isoglot.report.colors import PAPER
from isoglot.types import MaskRule
from tests.models.transplant.tiny_tokenizers import of_words, wordpiece

ERNIE = BatchRequest(recipe="ernie-m-tiny", stage=2)
HOSTILE = "</text></svg><script>alert(1)</script>\"'&\x00\x1b\ufffe\u202e"


@pytest.fixture(scope="module")
def browser(corpus) -> BatchBrowser:
    return BatchBrowser(corpus)


@pytest.fixture(scope="module")
def drawn(browser) -> DrawnBatch:
    return browser.drawn(ERNIE)


class _Boxes(HTMLParser):
    """The texts of the boxes of tokens, each with its target."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes: list[list[str]] = []
        self.tags: set[str] = set()
        self._inside = False

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if "ig-b-t" in (dict(attrs).get("class") or "").split():
            self.boxes.append([])
        if tag == "bdi":
            self._inside = True
            self.boxes[-1].append("")

    @override
    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "bdi"

    @override
    def handle_data(self, data: str) -> None:
        if self._inside:
            self.boxes[-1][-1] += data


def boxes(html: str) -> _Boxes:
    parser = _Boxes()
    parser.feed(html)
    return parser


def test_the_boxes_are_the_tokens_of_the_row(drawn):
    for row in drawn.rows:
        html = batch_html(drawn, [row], color_by="language", positions=True)
        shown = [box for box in boxes(html).boxes if box]
        tokens = [token for one in row.sequences for token in one.tokens]
        assert shown == [[t.text] if t.target is None else [t.text, t.target] for t in tokens]
        assert re.findall(r"<i>(\d+)</i>", html) == [str(token.position) for token in tokens]
        padding = re.findall(r"padding × (\d+)", html)
        assert padding == ([str(row.padding)] if row.padding else [])


def test_colors_follow_sequence_objective_or_language(drawn):
    row = next(row for row in drawn.rows if len({s.objective for s in row.sequences}) > 1)
    for by in ("sequence", "objective", "language"):
        html = batch_html(drawn, [row], color_by=by, positions=False)
        html = html[html.index("ig-b-row") :]
        shown = re.findall(r'class="ig-b-t ig-b-\w+" style="--c:(#\w+)"', html)
        expected = []
        for number, one in enumerate(row.sequences):
            for token in one.tokens:
                of = {
                    "sequence": number,
                    "objective": list(drawn.batch.num_targets).index(one.objective),
                    "language": drawn.languages().index(token.language),
                }
                expected.append(PALETTE[of[by] % len(PALETTE)])
        assert shown == expected


def test_counts_are_those_of_the_batch(drawn):
    found = {row[0]: row[1:] for row in counts(drawn)}
    assert list(found) == ["mlm", "btmlm", "tlm"]
    for name, number in drawn.batch.num_targets.items():
        assert found[name][:2] == (f"{number:,}", f"{number:,}")
        assert found[name][0] in summary_html(drawn, ERNIE)


def test_slots_of_btmlm_are_in_main_and_auxiliary_rows(drawn):
    kinds = {
        (row.part, one.rule): {token.kind for token in one.tokens}
        for row in drawn.rows
        for one in row.sequences
        if one.objective == "btmlm"
    }
    assert "slot" in kinds["main", MaskRule.FULL]
    assert "slot" in kinds["auxiliary", MaskRule.GENERATE]
    assert "masked" not in kinds["auxiliary", MaskRule.GENERATE]


def _sequence(*texts: str, language: str = "aa") -> DrawnSequence:
    tokens = [
        DrawnToken(
            text=text, kind="masked", position=0, language=language, target=text, markers=(text,)
        )
        for text in texts
    ]
    return DrawnSequence(
        objective="mlm",
        origin=texts[0],
        draw=0,
        number=0,
        rule=MaskRule.FULL,
        start=0,
        tokens=tuple(tokens),
    )


def test_hostile_text_is_shown_as_text(drawn):
    hostile = _sequence(HOSTILE, "x" * 100_000)
    row = replace(drawn.rows[0], sequences=(hostile,))
    html = batch_html(drawn, [row], color_by="sequence", positions=True)
    assert boxes(html).tags <= {"div", "style", "span", "bdi", "small", "i", "em", "h4"}
    assert len(html) < 20_000
    figure = Figure(HOSTILE)
    figure.add(sequence_block(hostile, title=HOSTILE))
    svg = figure.svg()
    names = {one.tag.rpartition("}")[2] for one in ET.fromstring(svg).iter()}  # noqa: S314
    assert names == {"svg", "style", "rect", "g", "text"}
    assert len(svg) < 20_000
    page = batch_page(drawn, [replace(drawn.rows[0], sequences=(hostile,))], title=HOSTILE)
    assert "<script" not in page
    console = Console(record=True, width=200)
    for line in row_lines(row):
        console.print(line)
    printed = console.export_text()
    assert len(printed) < 2000
    assert "\x1b" not in printed
    assert "\u202e" not in printed


def test_right_to_left_runs_are_set_from_the_right(drawn):
    row = replace(drawn.rows[0], sequences=(_sequence("القطة", "تجلس"),))
    html = batch_html(drawn, [row], color_by="sequence", positions=False)
    assert '<div class="ig-b-run" dir="rtl">' in html
    body = sequence_block(row.sequences[0], title="").body
    first, second = (float(x) for x in re.findall(r'<rect x="([\d.]+)" y="20"', body))
    assert first > second
    assert [is_right_to_left(text) for text in ("▁猫", "▁القطة", "שלום", "1 a", "")] == [
        False,
        True,
        True,
        False,
        False,
    ]


def _luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("paper", PAPER)
@pytest.mark.parametrize("color", PALETTE)
def test_outlines_have_contrast_on_light_and_dark_pages(color, paper):
    light, dark = sorted((_luminance(color), _luminance(paper)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


@pytest.mark.parametrize(
    "setting",
    [
        "objectives.distill.teacher=/etc",
        "objectives.distill.teacher=..\\etc",
        "stages.0.streams.text.objectives=[os.path:join]",
    ],
)
def test_paths_and_classes_are_refused(setting):
    with pytest.raises(IsoglotError, match="--recipe FILE"):
        parse_settings(f"seed=1\n{setting}")


def test_settings_change_the_batch(browser, drawn):
    settings = parse_settings("\n objectives.btmlm.masking.rate=0.1 \n\nseed=0\n")
    assert settings == ("objectives.btmlm.masking.rate=0.1", "seed=0")
    fewer = browser.drawn(replace(ERNIE, settings=settings))
    assert 0 < fewer.batch.num_targets["btmlm"] < drawn.batch.num_targets["btmlm"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"recipe": "/etc/passwd"}, "choose a recipe of the list"),
        ({"stage": 9}, r"the recipe has stages\.0 to stages\.2"),
        ({"step": 0}, "choose one from 1 to 1,000"),
        ({"micro_batch": 5}, "a step has those from 0 to 0"),
        ({"settings": ("batch.rows=131072", "batch.row_length=131072")}, "too many to show"),
        ({"settings": ("objectives.btmlm.rate=2",)}, "objectives.btmlm.rate"),
        ({"recipe": "xlm-k-tiny", "stage": 1}, "knowledge"),
        (
            {
                "recipe": "ablations/metaxlm-kd",
                "stage": 0,
                "settings": ("objectives.distill.languages=[aa]",),
            },
            "roberta-base is not a folder on this machine, and nothing is downloaded",
        ),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(browser, changes, sentence):
    with pytest.raises(IsoglotError, match=sentence):
        browser.drawn(replace(ERNIE, **changes))


def test_rows_and_masks_have_names(drawn):
    names = row_names(drawn)
    assert names[0] == "row 0"
    assert "auxiliary row 0 of btmlm" in names
    row = find_row(drawn, "auxiliary row 0 of btmlm")
    assert (row.part, row.objective) == ("auxiliary", "btmlm")
    assert find_row(drawn, "row 99").title == "row 0"
    whole, first, *_ = sequence_names(row)
    assert "sequence 0 of auxiliary row 0 of btmlm, mask rule generate" in mask_html(row, first)
    # the row's matrix has a path for each token, padding included
    assert mask_html(row, whole).count("<path ") == row.length


def test_recipes_that_fit(corpus, knowing):
    without, with_knowledge = set(fitting_recipes(corpus)), set(fitting_recipes(knowing))
    assert {"tiny", "xlm", "ernie-m-tiny"} <= without < with_knowledge <= set(recipe_names())
    assert with_knowledge - without >= {"xlm-k", "xlm-k-tiny"}


def test_a_recipe_that_transplants_needs_no_dictionaries_to_be_shown(corpus):
    assert "metaxlm-dict" in fitting_recipes(corpus)
    assert open_stage(load_recipe("metaxlm-dict"), corpus).micro_batch().batch.num_tokens > 0


def test_open_rows_are_resolved(corpus):
    recipe = load_recipe("tiny", ["batch.micro_rows=auto", "batch.rows=12"])
    assert open_stage(recipe, corpus).micro_batches() == 1
    recipe = load_recipe("tiny", ["batch.micro_rows=auto", "batch.rows=34"])
    number = open_stage(recipe, corpus).micro_batches()
    assert number == 17, "two rows each: 34 has no divisor of 16"


def test_texts_of_bytes_and_word_pieces(tmp_path):
    texts = TokenTexts(of_words("bytes", tmp_path / "bytes", ["größer", "猫"], "größe猫"))
    shown = {texts(number) for number in range(texts.vocabulary.size)}
    assert {"▁größer", "▁猫", "<mask>"} <= shown
    pieces = TokenTexts(wordpiece(tmp_path / "pieces", ["ab", "##c"]))
    assert {"ab", "##c", "[MASK]"} <= {pieces(n) for n in range(pieces.vocabulary.size)}
