"""Words and links of the tab Alignment: those of `isoglot align`, drawn as they are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import chain, pairwise
from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F

from isoglot.alignment.align import pharaoh
from isoglot.alignment.align_files import align_files
from isoglot.alignment.config import AlignConfig
from isoglot.errors import IsoglotError
from isoglot.evaluation.settings import Aligner
from isoglot.explore.alignment_figure import links_svg, matrix_svg
from isoglot.explore.session import ExploreModel
from isoglot.explore.word_links import (
    MAX_WORDS,
    LinkedPair,
    find_words,
    is_right_to_left,
    link_words,
    strengths,
)
from tests.evaluation.tiny_tokenizers import LINES, make_tokenizer, save_model

SVG = "{http://www.w3.org/2000/svg}"
PAIRS = [
    (LINES[0], LINES[4]),
    (LINES[1], LINES[0]),
    ("the fox", "rafiki yangu asubuhi"),
    (LINES[2], LINES[4]),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> ExploreModel:
    place = tmp_path_factory.mktemp("links") / "model"
    save_model(make_tokenizer("wordpiece"), place, num_hidden_layers=3)
    return ExploreModel("mine", place, device="cpu")


@pytest.mark.parametrize("aligner", get_args(Aligner))
@pytest.mark.parametrize("layer", [None, 0, 3])
def test_links_are_those_that_isoglot_align_writes(model, aligner, layer, tmp_path):
    """The file that the command writes, with its words of Chinese."""
    file = tmp_path / "zh-en.tsv"
    file.write_text("".join(f"{one}\t{other}\n" for one, other in PAIRS), encoding="utf-8")
    config = AlignConfig(aligner=aligner, layer=layer)
    out = tmp_path / "links"
    align_files([file], model.folder, out, config, pretokenize=["zh"])
    shown = []
    for one, other in PAIRS:
        words = find_words(one, "zh").words, find_words(other, "en").words
        shown.append(pharaoh(link_words(model, words, aligner=aligner, layer=layer).links))
    assert shown == out.read_text().splitlines()
    assert sum(map(bool, shown)) >= 3


def test_cosines_are_those_of_the_nearest_tokens(model):
    """Every pair of tokens of two words, one by one, from the states of all layers."""
    words = LINES[0].split(), LINES[4].split()
    pair = link_words(model, words, aligner="argmax", layer=2)
    states = []
    for side in words:
        tokens = [model.tokenizer(word, add_special_tokens=False)["input_ids"] for word in side]
        ids = model.tokenizer(" ".join(side))["input_ids"]
        assert ids[1:-1] == list(chain.from_iterable(tokens))
        with torch.no_grad():
            layers = model.encoder.model(
                input_ids=torch.tensor([ids]), output_hidden_states=True
            ).hidden_states
        ends = torch.tensor([0, *map(len, tokens)]).cumsum(0) + 1
        states.append([layers[2][0, a:b] for a, b in pairwise(ends.tolist())])
    for i, own in enumerate(states[0]):
        for j, others in enumerate(states[1]):
            nearest = max(float(F.cosine_similarity(a, b, dim=0)) for a in own for b in others)
            assert pair.cosines[i][j] == pytest.approx(nearest, abs=1e-5)
    least, greatest = (f(map(f, pair.cosines)) for f in (min, max))
    assert strengths(pair, [least, greatest, (least + greatest) / 2]) == pytest.approx([0, 1, 0.5])


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("Paka  anakunywa maziwa.", "sw", ["Paka", "anakunywa", "maziwa."]),
        ("我喜欢猫", "zh", ["我", "喜欢", "猫"]),
        ("我喜欢猫", "", ["我", "喜欢", "猫"]),
        ("สวัสดีครับ", "th", ["สวัสดี", "ครับ"]),
        ("猫が好き", "", ["猫", "が", "好", "き"]),
        ("ငါ ok", "my", ["ငါ", "ok"]),
        ("我 and you", "en", ["我", "and", "you"]),
        ("أنا أحب القطط", "", ["أنا", "أحب", "القطط"]),
        ("", "", []),
    ],
)
def test_words(text, language, words):
    assert find_words(text, language).words == words


def test_long_sentences_are_cut_with_a_sentence():
    found = find_words("a " * 100_000)
    assert len(found.words) == MAX_WORDS
    assert found.note == "Only the first 100 words of 2,500 are shown."
    assert find_words("x" * 1_000_000).words == ["x" * 5000]


def test_a_side_without_words_is_refused(model):
    with pytest.raises(IsoglotError, match="The second sentence has no word"):
        link_words(model, (["a"], []), aligner="itermax")


def parse(svg: str) -> Any:
    found = re.search(r"<svg.*</svg>", svg, re.DOTALL)
    assert found is not None
    return ET.fromstring(found[0])  # noqa: S314 (our own drawing)


def test_lines_join_linked_words_with_their_weight():
    words = ["the", "<b>cat", "x" * 100_000], ["القط", "猫猫猫猫猫猫猫猫猫猫猫猫"]
    cosines = [[0.9, 0.1], [0.5, -1.0], [0.2, 0.3]]
    pair = LinkedPair(
        words=words, links=[(0, 0), (1, 0), (2, 1)], cosines=cosines, layer=4, is_cut=False
    )
    drawing = parse(links_svg(pair, label='"mine" & <others>'))
    lines = drawing.findall(f".//{SVG}line")
    assert [line.get("data-link") for line in lines] == ["0-0", "1-0", "2-1"]
    widths = [float(line.get("stroke-width")) for line in lines]
    assert widths == pytest.approx([5.0, 3.0, 2.0])
    assert lines[0].get("y2") == lines[1].get("y2") != lines[2].get("y2")
    texts = drawing.findall(f"./{SVG}text")
    assert [text.text for text in texts][:2] == ["the", "<b>cat"]
    assert len(texts[2].text) < 20
    arabic = texts[3]
    assert (arabic.get("direction"), arabic.get("text-anchor")) == ("rtl", "end")
    assert (texts[0].get("direction"), texts[0].get("text-anchor")) == (None, "end")
    assert drawing.get("aria-label") == '"mine" & <others>'
    assert len(links_svg(pair, label="x")) < 10_000
    matrix = parse(matrix_svg(pair, label="x"))
    cells = matrix.findall(f".//{SVG}rect")
    assert len(cells) == 6
    assert [cell.get("stroke") is not None for cell in cells] == [1, 0, 1, 0, 0, 1]
    assert float(cells[0].get("fill-opacity")) == 1.0
    assert cells[3].find(f"{SVG}title").text.endswith("no token")


def test_direction_is_that_of_the_first_letter_that_has_one():
    assert is_right_to_left("«القط»")
    assert is_right_to_left("12 שלום a")
    assert not is_right_to_left("cat القط")
    assert not is_right_to_left("12 …")
