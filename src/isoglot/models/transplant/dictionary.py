"""Bilingual dictionaries in MUSE's format: two columns, separated by a space or a tab.

Reads any number of files, plain or compressed; gives one `Dictionary` and, for each file, how many
entries it gave and why lines were dropped. A word may have several translations; where a tab
separates the columns, an entry may have several words. Malformed lines are dropped and counted; a
file with too many of them is refused, since it is most likely no dictionary.
"""

from __future__ import annotations

import glob
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from isoglot.corpus.reading.files import read_lines, require_file
from isoglot.corpus.reading.reader import Skipped
from isoglot.errors import ModelError
from isoglot.models.transplant.config import SourceColumn
from isoglot.models.transplant.tokens import casefolded, nfkc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_MALFORMED = ("encoding", "one column", "more than two columns", "more than two words and no tab")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """Entries and dropped lines of one file."""

    file: str
    source_column: SourceColumn
    """The column with the words of the source model's language."""
    entries: int
    """Pairs of words that are used."""
    dropped: dict[str, int]
    """Lines that are not used, by reason."""


@dataclass(slots=True)
class Dictionary:
    """Translations into the source model's language, by casefolded word."""

    entries: dict[str, list[str]] = field(default_factory=dict)
    counts: list[FileCounts] = field(default_factory=list)

    def translations(self, word: str) -> list[str]:
        """The translations of a word, in the order of the files; empty for an unknown word."""
        return self.entries.get(casefolded(word), [])


def read_dictionaries(
    files: Iterable[Path],
    *,
    source_column: SourceColumn = "auto",
    max_malformed_ratio: float = 0.01,
    is_source_word: Callable[[str], bool] | None = None,
) -> Dictionary:
    """Join files into one dictionary.

    `is_source_word` says whether a word is one of the source model's language, which decides the
    column of `auto`.
    """
    dictionary = Dictionary()
    # a pair that is in two files, or in both directions, counts once
    known: set[tuple[str, str]] = set()
    for file in files:
        dropped: Counter[str] = Counter()
        first_malformed: tuple[int, str] | None = None
        lines = entries = 0
        pairs: list[tuple[str, str]] = []
        for number, pair in enumerate(_pairs(file), start=1):
            lines += 1
            if not isinstance(pair, str):
                pairs.append(pair)
                continue
            dropped[pair] += 1
            if pair in _MALFORMED and first_malformed is None:
                first_malformed = number, pair
        column = source_column if source_column != "auto" else find_column(pairs, is_source_word)
        for pair in pairs:
            added = [_add(dictionary, known, *one) for one in _directions(pair, column)]
            if any(added):
                entries += 1
            else:
                dropped["duplicate"] += 1
        malformed = sum(dropped[reason] for reason in _MALFORMED)
        _check_malformed(file, lines, malformed, first_malformed, max_malformed_ratio)
        dictionary.counts.append(
            FileCounts(
                file=str(file),
                source_column=column,
                entries=entries,
                dropped=dict(sorted(dropped.items())),
            )
        )
    return dictionary


def find_column(
    pairs: Iterable[tuple[str, str]], is_source_word: Callable[[str], bool] | None
) -> Literal["first", "second"]:
    """The column more of whose words are words of the source; the first, if there is no difference.

    MUSE's en-sw.txt has English in the first column, its sw-en.txt in the second.
    """
    is_word = is_source_word or (lambda _: False)
    columns = zip(*pairs, strict=True)
    counts = [sum(map(is_word, set(column))) / len(set(column)) for column in columns]
    return "second" if counts and counts[1] > counts[0] else "first"


def expand_patterns(patterns: Iterable[str]) -> list[Path]:
    """The files of names and glob patterns, each once."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        files = [Path(pattern)]
        if not glob.has_magic(pattern):
            require_file(files[0])
        else:
            files = [Path(file) for file in sorted(glob.glob(pattern))]  # noqa: PTH207 (absolute?)
            if not files:
                raise ModelError(
                    f"transplant.dictionaries: no file matches {pattern}. Put dictionaries there, "
                    "with a word and its translation on each line, or name others."
                )
        found |= dict.fromkeys(files)
    return list(found)


def _pairs(file: Path) -> Iterator[tuple[str, str] | str]:
    """The two columns of every line, or the reason why it is malformed."""
    for line in read_lines(file):
        if isinstance(line, Skipped):
            yield line.reason
            continue
        if not line.strip():
            yield "blank"
            continue
        cells = line.strip().split("\t") if "\t" in line.strip() else line.split()
        words = [" ".join(nfkc(cell).split()) for cell in cells]
        if len(words) == 2 and all(words):
            yield words[0], words[1]
        elif "\t" not in line.strip() and len(words) > 2:
            yield "more than two words and no tab"
        else:
            yield "one column" if sum(map(bool, words)) < 2 else "more than two columns"


def _directions(pair: tuple[str, str], source_column: SourceColumn) -> list[tuple[str, str]]:
    """The pair as (word to translate, its translation into the source's language)."""
    first, second = pair
    directions = {"first": [(second, first)], "second": [(first, second)]}
    return directions.get(source_column, [(second, first), (first, second)])


def _add(dictionary: Dictionary, known: set[tuple[str, str]], word: str, translation: str) -> bool:
    key = casefolded(word)
    if (key, translation) in known:
        return False
    known.add((key, translation))
    dictionary.entries.setdefault(key, []).append(translation)
    return True


def _check_malformed(
    file: Path, lines: int, malformed: int, first: tuple[int, str] | None, max_ratio: float
) -> None:
    if lines == 0:
        raise ModelError(f"{file} is empty. A dictionary has two words on each line.")
    if first is not None and malformed > max_ratio * lines:
        number, reason = first
        raise ModelError(
            f"{file}:{number}: {malformed} of {lines} lines are not a word and its translation "
            f"(this one: {reason}). Write two columns, with a tab between them."
        )
