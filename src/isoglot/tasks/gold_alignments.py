"""Word alignment: gold links between the words of two translations, in two data sets.

The score is the alignment error rate (Och and Ney 2003), 1 - (|A and S| + |A and P|) / (|A| + |S|)
for predicted links A, sure gold links S and possible gold links P.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from typing_extensions import override

from isoglot.tasks.base import Metric, TaskSplit
from isoglot.tasks.data_files import (
    file_beside,
    file_error,
    file_with_ending,
    numbered_lines,
    parallel_lines,
)
from isoglot.tasks.examples import AlignedPair
from isoglot.tasks.layouts import FileTask, Layout

if TYPE_CHECKING:
    from collections.abc import Sequence, Set
    from pathlib import Path

Link = tuple[int, int]
_LINKS_PER_STRAY = 1000
"""A file with more than one stray link (outside its sentence) in so many is damaged."""


class AlignmentTask(FileTask[AlignedPair, "Set[Link]"]):
    """Gold links and the alignment error rate."""

    kind = "alignment"
    version = 1
    metrics = (
        Metric(name="aer", higher_is_better=False),
        Metric(name="precision"),
        Metric(name="recall"),
    )

    @override
    def score(
        self, examples: Sequence[AlignedPair], predictions: Sequence[Set[Link]], language: str
    ) -> dict[str, float]:
        num_links = num_sure = right_sure = right_possible = 0
        for example, found in zip(examples, predictions, strict=True):
            num_links += len(found)
            num_sure += len(example.sure)
            right_sure += len(found & example.sure)
            right_possible += len(found & example.possible)
        total = num_links + num_sure
        return {
            "aer": 1 - (right_possible + right_sure) / total if total else 0.0,
            "precision": right_possible / num_links if num_links else 0.0,
            "recall": right_sure / num_sure if num_sure else 0.0,
        }


class XlmAlignGold(AlignmentTask):
    """XLM-Align's test sets (Chi et al. 2021): de-en 508 pairs, en-fr 447, ro-en 199, en-hi 90.

    From Europarl, WPT 2003 and WPT 2005, 1,244 pairs: those of MetaXLM's Figure 4. `alignv2.txt`
    has `sentence first second S|P` from 1; a link without a mark is sure. A folder that has only
    `align.txt`, the sure links, is scored on them. The n-th sentence number, ascending, is line n.
    Two links point outside their sentences (de-en, line 3,728 and en-hi, line 678) and count as
    gold links that no model can find, as in the released scorer.
    """

    name = "alignment"
    languages = "de-en en-fr en-hi ro-en"
    summary = "words that translate each other"
    paper = "Chi et al. 2021"
    license = "MIT repository, gold sets public"
    layouts: ClassVar = (
        Layout("word_align/xlm-align/{language}-{other}/test.{language}", split="test"),
        Layout("xlm-align/{language}-{other}/test.{language}", split="test"),
    )
    companions = tuple(
        f"{place}xlm-align/{{language}}-{{other}}/{name}"
        for place in ("word_align/", "")
        for name in ("test.{other}", "align.txt", "alignv2.txt")
    )

    @override
    def read(self, split: TaskSplit) -> list[AlignedPair]:
        path = split.files[0]
        first, second = path.parent.name.split("-")
        pairs = parallel_lines(path, file_with_ending(path, first, second))
        both = file_beside(path, "alignv2.txt"), file_beside(path, "align.txt")
        gold_path = next((file for file in both if file.is_file()), both[0])
        gold = [_parse_xlm_align(gold_path, *line) for line in numbered_lines(gold_path)]
        sentences = sorted({each.sentence for each in gold})
        if len(sentences) != len(pairs):
            what = f"links of {len(sentences)} sentences and there are {len(pairs)}."
            raise file_error(gold_path, len(gold), what)
        place = {sentence: index for index, sentence in enumerate(sentences)}
        placed = [each._replace(sentence=place[each.sentence]) for each in gold]
        return _examples(gold_path, pairs, placed)


class AwesomeAlignGold(AlignmentTask):
    """awesome-align's test sets (Dou and Neubig 2021): zh-en 450 pairs, ro-en 248, en-fr 447.

    `src ||| tgt` on each line; gold links `i-j` are sure and `ipj` possible, from 1.
    """

    name = "alignment-awesome"
    languages = "en-fr ro-en zh-en"
    summary = "words that translate each other, other sets"
    paper = "Dou and Neubig 2021"
    license = "BSD-3-Clause repository, gold sets public"
    layouts: ClassVar = (
        *(
            Layout(f"{folder}{one}{two}.src-tgt", (f"{one}-{two}",), "test")
            for folder in ("word_align/awesome-align/", "awesome-align/examples/")
            for one, two in (("zh", "en"), ("ro", "en"), ("en", "fr"), ("de", "en"), ("ja", "en"))
        ),
    )
    companions = tuple(
        f"{folder}/*.{ending}"
        for folder in ("word_align/awesome-align", "awesome-align/examples")
        for ending in ("gold", "out")
    )

    @override
    def read(self, split: TaskSplit) -> list[AlignedPair]:
        path = split.files[0]
        pairs = [_parse_sides(path, number, line) for number, line in numbered_lines(path)]
        gold_path = file_with_ending(path, "src-tgt", "gold")
        gold = list(numbered_lines(gold_path))
        if len(gold) != len(pairs):
            raise file_error(gold_path, len(gold), f"{path.name} has {len(pairs)} lines.")
        links = [
            _parse_awesome_align(gold_path, number, text)
            for number, line in gold
            for text in line.split()
        ]
        return _examples(gold_path, pairs, links)


class _GoldLink(NamedTuple):
    line: int
    sentence: int
    link: Link
    is_sure: bool


def _examples(
    gold_path: Path, pairs: list[tuple[str, str]], gold: list[_GoldLink]
) -> list[AlignedPair]:
    """The examples; refused if too many of the links are outside their sentences."""
    words = [(tuple(first.split()), tuple(second.split())) for first, second in pairs]
    sure: list[set[Link]] = [set() for _ in pairs]
    possible: list[set[Link]] = [set() for _ in pairs]
    stray: list[_GoldLink] = []
    for each in gold:
        possible[each.sentence].add(each.link)
        if each.is_sure:
            sure[each.sentence].add(each.link)
        sides = zip(each.link, words[each.sentence], strict=True)
        if not all(0 <= index < len(side) for index, side in sides):
            stray.append(each)
    if len(stray) > max(1, len(gold) // _LINKS_PER_STRAY):
        i, j = stray[0].link
        what = f"the link {i + 1}-{j + 1} is outside its sentence."
        raise file_error(gold_path, stray[0].line, what)
    return [
        AlignedPair(first=first, second=second, sure=frozenset(s), possible=frozenset(p))
        for (first, second), s, p in zip(words, sure, possible, strict=True)
    ]


def _parse_xlm_align(path: Path, number: int, line: str) -> _GoldLink:
    match = re.fullmatch(r"(\d+) (-?\d+) (-?\d+)(?: ([SP]))?\s*", line)
    if match is None:
        raise file_error(path, number, f"{line!r} is not `sentence first second S|P`.")
    link = int(match[2]) - 1, int(match[3]) - 1
    return _GoldLink(number, int(match[1]), link, match[4] != "P")


def _parse_sides(path: Path, number: int, line: str) -> tuple[str, str]:
    first, bars, second = line.partition(" ||| ")
    if not bars:
        raise file_error(path, number, "has no ||| between two sentences.")
    return first, second


def _parse_awesome_align(path: Path, number: int, text: str) -> _GoldLink:
    match = re.fullmatch(r"(\d+)([-p])(\d+)", text)
    if match is None:
        raise file_error(
            path, number, f"{text!r} is not a link such as 3-4 (sure) or 3p4 (possible)."
        )
    link = int(match[1]) - 1, int(match[3]) - 1
    return _GoldLink(number, number - 1, link, match[2] == "-")
