"""Which columns of a table, or fields of an object, hold the text of a language or of a pair.

By their names first (`text`; `en` and `sw`; `translation.en`; `src` and `tgt`), then by what is in
them: the two columns with the longest texts.
"""

from __future__ import annotations

import re
from statistics import mean
from typing import TYPE_CHECKING

from isoglot.errors import CorpusError
from isoglot.languages import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TEXT_FIELDS = ("text", "content", "sentence", "body", "raw_content", "document", "article")
_PAIR_FIELDS = (
    ("source", "target"),
    ("src", "tgt"),
    ("src_text", "tgt_text"),
    ("source_text", "target_text"),
    ("sentence1", "sentence2"),
    ("text1", "text2"),
    ("first", "second"),
)
_CLEARLY_LONGER = 3.0
"""A column of text is at least this many times as long as one that is none: an id, a score."""
_COMPARED = 200
_MOSTLY = 0.8


def choose_fields(
    path: Path, samples: Mapping[str, Sequence[str]], languages: Sequence[str]
) -> tuple[str, ...]:
    """The names of the fields that hold the text of a language, or of each side of a pair.

    `samples` are some texts of each field.
    """
    found = _text_field(samples) if len(languages) == 1 else _pair_fields(samples, languages)
    if found is None:
        wanted = "text" if len(languages) == 1 else f"{languages[0]} and {languages[1]}"
        names = ", ".join(sorted(samples)) or "none with text"
        raise CorpusError(
            f"{path}: none of its fields is clearly that of {wanted} (it has {names}). Name the "
            f"field {'`text`' if len(languages) == 1 else 'of each language by its code'}."
        )
    return found


def _text_field(samples: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    for name in _TEXT_FIELDS:
        if name in samples:
            return (name,)
    return (next(iter(samples)),) if len(samples) == 1 else None


def _pair_fields(
    samples: Mapping[str, Sequence[str]], languages: Sequence[str]
) -> tuple[str, ...] | None:
    sides = []
    for language in languages:
        named = [name for name in samples if canonical(name.rpartition(".")[2]) == language]
        named = named or [name for name in samples if language in _codes(name)]
        sides.append(named[0] if len(named) == 1 else None)
    first, second = sides
    if first is not None and second is not None and first != second:
        return first, second
    for couple in _PAIR_FIELDS:
        if all(name in samples for name in couple):
            return couple
    names = tuple(samples)
    return names if len(names) == 2 else None


def choose_columns(
    path: Path, rows: Sequence[Sequence[str]], languages: Sequence[str]
) -> tuple[int, int, bool]:
    """The columns of both sides, counted from 1, and whether the first row names the columns."""
    names = [canonical(cell.strip()) if cell.strip() else "" for cell in rows[0]]
    if all(names.count(language) == 1 for language in languages) and len(set(rows[0])) > 1:
        first, second = (names.index(language) + 1 for language in languages)
        # a row of texts is not two codes, but a row of codes may be `eng TAB swa TAB text TAB text`
        if all(row[first - 1 : first] != rows[0][first - 1 : first] for row in rows[1:]):
            return first, second, len(rows) > 1
    if len(rows[0]) == 2:
        return 1, 2, False
    lengths = [mean(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    order = sorted(range(len(lengths)), key=lambda column: -lengths[column])
    if lengths[order[1]] < _CLEARLY_LONGER * lengths[order[2]]:
        raise CorpusError(
            f"{path}: has {len(lengths)} columns, and which two of them are {languages[0]} and "
            f"{languages[1]} is not clear. Keep only these two, {languages[0]} first: "
            "cut -f1,2 FILE > NEW."
        )
    first, second = sorted(order[:2])
    return first + 1, second + 1, False


def are_swapped(first: Sequence[str], second: Sequence[str], languages: Sequence[str]) -> bool:
    """Whether each of two columns is in the language of the other, by language identification."""
    from isoglot.corpus.cleaning.language_id import LanguageIdentifier

    try:
        identifier = LanguageIdentifier.open()
    except CorpusError:  # its package is not installed
        return False
    if not first or not all(language in identifier.labels for language in languages):
        return False
    one, other = (identifier.labels.index(language) for language in languages)
    likelier = []
    for texts in (first, second):
        found = identifier.probabilities(list(texts[:_COMPARED]))
        likelier.append(float((found[:, other] > found[:, one]).mean()))
    return likelier[0] > _MOSTLY and likelier[1] < 1 - _MOSTLY


def _codes(name: str) -> set[str]:
    """The codes of languages that a name may hold: `sentence_en`, `text.sw`."""
    return {canonical(part) for part in re.split(r"[^A-Za-z]+", name) if part}
