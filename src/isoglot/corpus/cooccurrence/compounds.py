"""Two-word compounds that translate each other, such as *ist die* and *is the*, from three sources.

    phrase table    lines `ist die ||| is the ||| scores` (Moses, OPUS), or the two with a tab
    alignments      two texts, line by line, and the links between their words (Pharaoh: `0-0 1-2`)
    lexicon         a dictionary: two of its entries, wherever both sides stand near each other

MLM-GC (Ai and Fang, 2023) section 3.3 takes the first. Words are what stands between spaces.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from isoglot.corpus.readers.base import Skipped
from isoglot.corpus.readers.files import read_lines
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Two = tuple[str, str]


class Compound(NamedTuple):
    """Two words of one language and the two that translate them."""

    first: Two
    second: Two


def from_phrase_table(path: Path, *, least: float = 0.0) -> list[Compound]:
    """The entries with two words on both sides.

    Args:
        path: a phrase table, plain or compressed.
        least: the least that the third score (of the second side, given the first) must be.
    """
    found: dict[Compound, None] = {}
    for number, line in _lines(path):
        table = "|||" in line
        sides = [part.strip() for part in line.split("|||" if table else "\t")]
        if len(sides) < 2:
            raise CorpusError(
                f"{path}, line {number}: has no two sides. Separate them with ||| or with a tab."
            )
        first, second = sides[0].split(), sides[1].split()
        if len(first) != 2 or len(second) != 2:
            continue
        if least > 0 and (not table or _third_score(path, number, sides) < least):
            continue
        found[Compound((first[0], first[1]), (second[0], second[1]))] = None
    return list(found)


def from_alignments(first: Path, second: Path, links: Path, *, times: int = 1) -> list[Compound]:
    """The neighbouring words whose only links lead to neighbouring words, and to nothing else.

    Args:
        first: sentences of one language, a line each, words between spaces.
        second: their translations, line by line.
        links: `i-j` for each link of a line: word i of the first, word j of the second, from 0.
        times: how often a compound must be found.
    """
    found: Counter[Compound] = Counter()
    texts = zip(_lines(first), _lines(second), _lines(links), strict=False)
    for (number, one), (_, other), (_, pairs) in texts:
        words, translations = one.split(), other.split()
        to, back = _links(links, number, pairs, len(words), len(translations))
        for i in range(len(words) - 1):
            there = sorted(to.get(i, set()) | to.get(i + 1, set()))
            alone = all(len(to.get(k, ())) == 1 for k in (i, i + 1))
            alone &= all(len(back[j]) == 1 for j in there)
            if alone and len(there) == 2 and there[1] - there[0] == 1:
                translated = (translations[there[0]], translations[there[1]])
                found[Compound((words[i], words[i + 1]), translated)] += 1
    return [compound for compound, number in found.items() if number >= times]


def read_lexicon(path: Path) -> list[Two]:
    """The entries of a dictionary: a word and its translation, with a tab or a space between."""
    found: dict[Two, None] = {}
    for number, line in _lines(path):
        words = line.split("\t") if "\t" in line else line.split()
        if len(words) != 2:
            raise CorpusError(f"{path}, line {number}: is not a word and its translation.")
        found[words[0].strip(), words[1].strip()] = None
    return list(found)


def _links(
    path: Path, number: int, line: str, num_first: int, num_second: int
) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """The words that each word is linked to, from either side."""
    to: dict[int, set[int]] = {}
    back: dict[int, set[int]] = {}
    for pair in line.split():
        i, _, j = pair.partition("-")
        if not (i.isdecimal() and j.isdecimal() and int(i) < num_first and int(j) < num_second):
            raise CorpusError(
                f"{path}, line {number}: {pair!r} links no two words of that line. Links are i-j, "
                "numbers of words from 0."
            )
        to.setdefault(int(i), set()).add(int(j))
        back.setdefault(int(j), set()).add(int(i))
    return to, back


def _third_score(path: Path, number: int, sides: list[str]) -> float:
    try:
        return float(sides[2].split()[2])
    except (IndexError, ValueError):
        raise CorpusError(
            f"{path}, line {number}: has no third score. Leave out the least score."
        ) from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, Skipped):
            raise CorpusError(f"{path}, line {number}: is not UTF-8. Convert the file.")
        yield number, line
