"""Gold links of a file, and the scores of links that were found.

A line for each pair: `i-j` is a sure link, `ipj` or `i?j` a possible one. Scores are those of the
alignment tasks: alignment error rate, precision and recall, with intervals over pairs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.errors import CorpusError
from isoglot.intervals import interval, measure
from isoglot.tasks.data_files import file_error, numbered_lines
from isoglot.tasks.examples import AlignedPair
from isoglot.tasks.gold_alignments import AwesomeAlignGold

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.alignment.aligner import Link, Words

_LINK = re.compile(r"(\d+)([-p?])(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkScore:
    """A metric of the links of a file, between 0 and 1."""

    metric: str
    """`aer`, `precision` or `recall`."""
    value: float
    low: float
    """2.5 % quantile of a bootstrap over pairs."""
    high: float
    """97.5 % quantile."""


class GoldLinks:
    """The gold links of a file, compared with links in the same order."""

    def __init__(self, file: Path, *, first_word: int = 0) -> None:
        """`first_word` is the number of the first word: 0 as in Pharaoh format, or 1."""
        self._file = file
        self._sure: list[frozenset[Link]] = []
        self._possible: list[frozenset[Link]] = []
        self._examples: list[AlignedPair] = []
        self._found: list[frozenset[Link]] = []
        for number, line in numbered_lines(file):
            links = [_parse(file, number, text, first_word) for text in line.split()]
            self._sure.append(frozenset(link for link, is_sure in links if is_sure))
            self._possible.append(frozenset(link for link, _ in links))

    def add(self, words: Words, links: Sequence[Link]) -> None:
        """The links that were found in the next pair."""
        number = len(self._examples)
        if number == len(self._sure):
            raise CorpusError(
                f"{self._file} has {number:,} lines, and there are more pairs. Give gold links "
                "for each pair, on its line."
            )
        gold = self._sure[number], self._possible[number]
        beyond = [link for link in gold[1] if not all(map(_is_below, link, map(len, words)))]
        if beyond:
            i, j = min(beyond)
            raise file_error(
                self._file,
                number + 1,
                f"the link {i}-{j} (counted from 0) is outside its pair, which has "
                f"{len(words[0])} and {len(words[1])} words. If words are counted from 1, add "
                "--gold-from 1.",
            )
        self._examples.append(
            AlignedPair(
                first=tuple(words[0]), second=tuple(words[1]), sure=gold[0], possible=gold[1]
            )
        )
        self._found.append(frozenset(links))

    def scores(self) -> list[LinkScore]:
        """The scores of all links."""
        if len(self._examples) < len(self._sure):
            raise CorpusError(
                f"{self._file} has {len(self._sure):,} lines, and there are "
                f"{len(self._examples):,} pairs. Give gold links for each pair, on its line."
            )
        measured = measure(AwesomeAlignGold(), self._examples, self._found, "")
        found = []
        for name, one in measured.items():
            low, high = (one.value, one.value) if one.examples is None else interval(one.examples)
            found.append(LinkScore(metric=name, value=one.value, low=low, high=high))
        return found


def _is_below(index: int, number: int) -> bool:
    return 0 <= index < number


def _parse(file: Path, number: int, text: str, first_word: int) -> tuple[Link, bool]:
    match = _LINK.fullmatch(text)
    if match is None:
        raise file_error(
            file, number, f"{text!r} is not a link such as 3-4 (sure) or 3p4 (possible)."
        )
    return (int(match[1]) - first_word, int(match[3]) - first_word), match[2] == "-"
