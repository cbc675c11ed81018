"""Word alignment: which words of two translations belong together, against links drawn by people.

Two collections in two formats, one score: the alignment error rate (Och and Ney 2003),
1 - (|A and S| + |A and P|) / (|A| + |S|) for links A, sure gold links S and possible ones P.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.examples import WordAligned
from isoglot.tasks.finding import FileTask, Layout
from isoglot.tasks.lines import damaged, numbered_lines
from isoglot.tasks.parallel import beside, line_pairs, sibling

if TYPE_CHECKING:
    from collections.abc import Sequence, Set
    from pathlib import Path

    from isoglot.tasks.base import Kind, Part

Link = tuple[int, int]
_STRAY_LINKS = 1000
"""One link in so many may point outside its sentence before the file counts as damaged."""


class AlignmentTask(FileTask[WordAligned, "Set[Link]"]):
    """Gold links and their score."""

    kind: ClassVar[Kind] = "alignment"
    version = 1
    metrics = (
        Metric(name="aer", higher_is_better=False),
        Metric(name="precision"),
        Metric(name="recall"),
    )

    @override
    def score(
        self, examples: Sequence[WordAligned], predictions: Sequence[Set[Link]], language: str
    ) -> dict[str, float]:
        links = sure_links = also_sure = also_possible = 0
        for example, found in zip(examples, predictions, strict=True):
            links += len(found)
            sure_links += len(example.sure)
            also_sure += len(found & example.sure)
            also_possible += len(found & example.possible)
        total = links + sure_links
        return {
            "aer": 1 - (also_possible + also_sure) / total if total else 0.0,
            "precision": also_possible / links if links else 0.0,
            "recall": also_sure / sure_links if sure_links else 0.0,
        }


class XlmAlignGold(AlignmentTask):
    """XLM-Align's test sets (Chi et al. 2021): de-en 508 pairs, en-fr 447, ro-en 199, en-hi 90.

    From Europarl, WPT 2003 and WPT 2005, 1,244 pairs: those of MetaXLM's Figure 4. The repository
    is MIT, the gold sets are the usual public ones. `alignv2.txt` has `sentence first second S|P`
    from 1; no mark is sure. The n-th sentence number, ascending, is line n. Two links point outside
    their sentences (de-en, line 3,728 and en-hi, line 678); they stay, so that nobody can find
    them, as in the released scorer.
    """

    name = "alignment"
    languages = "de-en en-fr en-hi ro-en"
    line = "words that translate each other"
    paper = "Chi et al. 2021"
    licence = "MIT repository, gold sets public"
    layouts: ClassVar = (
        Layout("word_align/xlm-align/{language}-{other}/test.{language}", split="test"),
        Layout("xlm-align/{language}-{other}/test.{language}", split="test"),
    )

    @override
    def read(self, part: Part) -> list[WordAligned]:
        path = part.files[0]
        first, second = path.parent.name.split("-")
        pairs = line_pairs(path, sibling(path, first, second))
        gold_path = beside(path, "alignv2.txt")
        rows = [
            (number, _numbers(gold_path, number, line))
            for number, line in numbered_lines(gold_path)
        ]
        sentences = sorted({sentence for _, (sentence, _, _) in rows})
        if len(sentences) != len(pairs):
            raise damaged(
                gold_path,
                len(rows),
                f"links of {len(sentences)} sentences and there are {len(pairs)}.",
            )
        place = {sentence: index for index, sentence in enumerate(sentences)}
        sure: list[set[Link]] = [set() for _ in pairs]
        possible: list[set[Link]] = [set() for _ in pairs]
        for _, (sentence, link, is_sure) in rows:
            possible[place[sentence]].add(link)
            if is_sure:
                sure[place[sentence]].add(link)
        lines = [(number, place[sentence], link) for number, (sentence, link, _) in rows]
        return _examples(gold_path, pairs, sure, possible, lines)


class AwesomeAlignGold(AlignmentTask):
    """awesome-align's test sets (Dou and Neubig 2021): zh-en 450 pairs, ro-en 248, en-fr 447.

    The repository is BSD-3-Clause. `src ||| tgt` on each line; gold links `i-j` are sure and `ipj`
    possible, from 1.
    """

    name = "alignment-awesome"
    languages = "en-fr ro-en zh-en"
    line = "words that translate each other, other sets"
    paper = "Dou and Neubig 2021"
    licence = "BSD-3-Clause repository, gold sets public"
    layouts: ClassVar = (
        *(
            Layout(f"{folder}{one}{two}.src-tgt", (f"{one}-{two}",), "test")
            for folder in ("word_align/awesome-align/", "awesome-align/examples/")
            for one, two in (("zh", "en"), ("ro", "en"), ("en", "fr"), ("de", "en"), ("ja", "en"))
        ),
    )

    @override
    def read(self, part: Part) -> list[WordAligned]:
        path = part.files[0]
        pairs = [_sides(path, number, line) for number, line in numbered_lines(path)]
        gold_path = sibling(path, "src-tgt", "gold")
        gold = list(numbered_lines(gold_path))
        if len(gold) != len(pairs):
            raise damaged(gold_path, len(gold), f"{path.name} has {len(pairs)} lines.")
        sure: list[set[Link]] = []
        possible: list[set[Link]] = []
        lines = []
        for number, line in gold:
            links = [_link(gold_path, number, link) for link in line.split()]
            sure.append({link for link, is_sure in links if is_sure})
            possible.append({link for link, _ in links})
            lines += [(number, number - 1, link) for link, _ in links]
        return _examples(gold_path, pairs, sure, possible, lines)


def _examples(
    gold_path: Path,
    pairs: list[tuple[str, str]],
    sure: list[set[Link]],
    possible: list[set[Link]],
    lines: list[tuple[int, int, Link]],
) -> list[WordAligned]:
    """The examples, unless too many links (line, sentence, link) point outside their sentences."""
    words = [(tuple(first.split()), tuple(second.split())) for first, second in pairs]
    stray = [
        (number, link)
        for number, index, link in lines
        if not (0 <= link[0] < len(words[index][0]) and 0 <= link[1] < len(words[index][1]))
    ]
    if len(stray) > max(1, len(lines) // _STRAY_LINKS):
        number, (first, second) = stray[0]
        raise damaged(
            gold_path, number, f"the link {first + 1}-{second + 1} is outside its sentence."
        )
    return [
        WordAligned(first=first, second=second, sure=frozenset(s), possible=frozenset(p))
        for (first, second), s, p in zip(words, sure, possible, strict=True)
    ]


def _numbers(path: Path, number: int, line: str) -> tuple[int, Link, bool]:
    match = re.fullmatch(r"(\d+) (-?\d+) (-?\d+)(?: ([SP]))?\s*", line)
    if match is None:
        raise damaged(path, number, f"{line!r} is not `sentence first second S|P`.")
    link = int(match[2]) - 1, int(match[3]) - 1
    return int(match[1]), link, match[4] != "P"


def _sides(path: Path, number: int, line: str) -> tuple[str, str]:
    first, bars, second = line.partition(" ||| ")
    if not bars:
        raise damaged(path, number, "has no ||| between two sentences.")
    return first, second


def _link(path: Path, number: int, text: str) -> tuple[Link, bool]:
    match = re.fullmatch(r"(\d+)([-p])(\d+)", text)
    if match is None:
        raise damaged(path, number, f"{text!r} is no link like 3-4 or 3p4.")
    return (int(match[1]) - 1, int(match[3]) - 1), match[2] == "-"
