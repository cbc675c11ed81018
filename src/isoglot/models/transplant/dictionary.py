"""Bilingual dictionaries in MUSE's format: two columns with a space or a tab between.

Reads any number of files, plain or compressed; gives one `Dictionary` and, for each file, how many
entries it gave and why lines were dropped. A word may have many translations and, where a tab
separates the columns, many words. A few broken lines are dropped and counted; a file with more of
them is refused, since it is most likely no dictionary.
"""

from __future__ import annotations

import glob
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from isoglot.corpus.readers.base import Skipped
from isoglot.corpus.readers.files import read_lines
from isoglot.errors import ModelError
from isoglot.models.transplant.surface import composed, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SourceColumn = Literal["first", "second", "either"]
"""The column with the words of the source model's language."""

_BROKEN = (
    "encoding",
    "one column",
    "more than two columns",
    "more than two words and no tab",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """What one file gave."""

    file: str
    entries: int
    """Pairs of words that are used."""
    dropped: dict[str, int]
    """Lines that are not, by reason."""


@dataclass(slots=True)
class Dictionary:
    """Translations into the source model's language, by word, case put aside."""

    entries: dict[str, list[str]] = field(default_factory=dict)
    counts: list[FileCounts] = field(default_factory=list)

    def translations(self, word: str) -> list[str]:
        """The translations of a word, in the order of the files; none where it is unknown."""
        return self.entries.get(folded(word), [])


def read_dictionaries(
    files: Iterable[Path], *, source_column: SourceColumn = "either", max_broken: float = 0.01
) -> Dictionary:
    """One dictionary from many files.

    Raises:
        CorpusError: a file is missing or damaged.
        ModelError: more than a share of `max_broken` of a file's lines are not two columns.
    """
    dictionary = Dictionary()
    # a pair of words that is in two files, or in both directions, counts once
    known: set[tuple[str, str]] = set()
    for file in files:
        dropped: Counter[str] = Counter()
        first_broken: tuple[int, str] | None = None
        lines = entries = 0
        for number, pair in enumerate(_pairs(file), start=1):
            lines += 1
            if isinstance(pair, str):
                dropped[pair] += 1
                if pair in _BROKEN and first_broken is None:
                    first_broken = number, pair
                continue
            added = [_add(dictionary, known, *way) for way in _ways(pair, source_column)]
            if any(added):
                entries += 1
            else:
                dropped["duplicate"] += 1
        broken = sum(dropped[reason] for reason in _BROKEN)
        _check(file, lines, broken, first_broken, max_broken)
        dictionary.counts.append(
            FileCounts(file=str(file), entries=entries, dropped=dict(sorted(dropped.items())))
        )
    return dictionary


def files_of(patterns: Iterable[str]) -> list[Path]:
    """The files that names and patterns stand for, each once.

    Raises:
        ModelError: a pattern stands for none.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        files = [Path(pattern)]
        if glob.has_magic(pattern):
            files = [Path(file) for file in sorted(glob.glob(pattern))]  # noqa: PTH207 (absolute?)
            if not files:
                raise ModelError(
                    f"transplant.dictionaries: no file is called {pattern}. Put the dictionaries "
                    "there, a word and its translation on each line, or name others."
                )
        found |= dict.fromkeys(files)
    return list(found)


def _pairs(file: Path) -> Iterator[tuple[str, str] | str]:
    """The two columns of every line, or why it has not got them."""
    for line in read_lines(file):
        if isinstance(line, Skipped):
            yield line.reason
            continue
        if not line.strip():
            yield "blank"
            continue
        cells = line.strip().split("\t") if "\t" in line.strip() else line.split()
        words = [" ".join(composed(cell).split()) for cell in cells]
        if len(words) == 2 and all(words):
            yield words[0], words[1]
        elif "\t" not in line.strip() and len(words) > 2:
            yield "more than two words and no tab"
        else:
            yield "one column" if sum(map(bool, words)) < 2 else "more than two columns"


def _ways(pair: tuple[str, str], source_column: SourceColumn) -> list[tuple[str, str]]:
    """The pair as (word to translate, its translation into the source's language)."""
    first, second = pair
    ways = {"first": [(second, first)], "second": [(first, second)]}
    return ways.get(source_column, [(second, first), (first, second)])


def _add(dictionary: Dictionary, known: set[tuple[str, str]], word: str, translation: str) -> bool:
    key = folded(word)
    if (key, translation) in known:
        return False
    known.add((key, translation))
    dictionary.entries.setdefault(key, []).append(translation)
    return True


def _check(
    file: Path, lines: int, broken: int, first: tuple[int, str] | None, max_broken: float
) -> None:
    if lines == 0:
        raise ModelError(f"{file} is empty. A dictionary has two words on each line.")
    if first is not None and broken > max_broken * lines:
        number, reason = first
        raise ModelError(
            f"{file}:{number}: {broken} of {lines} lines are not a word and its translation (this "
            f"one: {reason}). Write two columns, with a tab between where one has several words."
        )
