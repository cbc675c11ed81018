"""Which columns of a table, fields of an object or files hold the text of which language.

By their names first (`text`; `en` and `sw`; `translation.en`; `src` and `tgt`), then by what is in
them: the two columns with the longest texts. Two files that are parallel line by line (`a.en,a.sw`)
are found by the language in their names, or taken two by two in the order in which they are given.
"""

from __future__ import annotations

import re
from statistics import mean
from typing import TYPE_CHECKING

from isoglot.corpus.cleaning.column_order import MAX_COMPARED, are_swapped
from isoglot.corpus.reading.files import read_lines
from isoglot.errors import CorpusError
from isoglot.languages import canonical, code_of_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
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


def choose_fields(
    path: Path, samples: Mapping[str, Sequence[str]], languages: Sequence[str]
) -> tuple[str, ...]:
    """The names of the fields that hold the text of a language, or of each side of a pair.

    `samples` are some texts of each field.
    """
    if len(languages) == 1:
        found = _text_field(samples, languages[0])
    else:
        found = _pair_fields(samples, languages)
    if found is None:
        wanted = "text" if len(languages) == 1 else f"{languages[0]} and {languages[1]}"
        names = ", ".join(sorted(samples)) or "none"
        raise CorpusError(
            f"{path}: which field holds {wanted} is not clear (its fields with text: {names}). "
            f"Rename {'it' if len(languages) == 1 else 'the fields'} to {wanted}."
        )
    return found


def has_named_fields(names: Collection[str], languages: Sequence[str]) -> bool:
    """Whether names alone say which field is the text of a language, or of each side of a pair."""
    if len(languages) == 1:
        return any(name in names for name in _TEXT_FIELDS)
    found = {_field_of(names, language) for language in languages}
    known = any(all(name in names for name in couple) for couple in _PAIR_FIELDS)
    return known or (None not in found and len(found) == len(languages))


def _text_field(samples: Mapping[str, Sequence[str]], language: str) -> tuple[str, ...] | None:
    for name in _TEXT_FIELDS:
        if name in samples:
            return (name,)
    named = _field_of(samples, language)
    if named is not None:
        # `id` may be Indonesian, or numbers beside the text
        longest = max(mean(map(len, texts)) for texts in samples.values())
        if _CLEARLY_LONGER * mean(map(len, samples[named])) >= longest:
            return (named,)
    return (next(iter(samples)),) if len(samples) == 1 else None


def _pair_fields(
    samples: Mapping[str, Sequence[str]], languages: Sequence[str]
) -> tuple[str, ...] | None:
    first, second = (_field_of(samples, language) for language in languages)
    if first is not None and second is not None and first != second:
        return first, second
    for couple in _PAIR_FIELDS:
        if all(name in samples for name in couple):
            return couple
    names = tuple(samples)
    return names if len(names) == 2 else None


def _field_of(names: Iterable[str], language: str) -> str | None:
    """The only name that is that of a language, or else has its code in it."""
    whole = [name for name in names if _code(name.rpartition(".")[2]) == language]
    named = whole or [name for name in names if language in _codes(name)]
    return named[0] if len(named) == 1 else None


def in_order(
    names: tuple[str, str], samples: Mapping[str, Sequence[str]], languages: Sequence[str]
) -> tuple[str, str]:
    """Two fields in the order of the pair's languages: by identification, if no name says it."""
    first, second = names
    if tuple(_field_of(names, language) for language in languages) == names:
        return names
    return (second, first) if are_swapped(samples[first], samples[second], languages) else names


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


def _codes(name: str) -> set[str]:
    """The codes of languages that a name may hold: `sentence_en`, `text.sw`, `English text`."""
    return {_code(part) for part in re.split(r"[^A-Za-z]+", name) if part}


def _code(name: str) -> str:
    """The code of a language by its name or by another code."""
    return code_of_name(name) or canonical(name)


def line_pairs(files: Sequence[Path], pair: str) -> list[tuple[Path, Path]]:
    """Files of one column two by two: by the language in their names, or by their order."""
    first, second = pair.split("-")
    sides = [_side(path, (first, second)) for path in files]
    if files and all(side is not None for side in sides):
        by_stem: dict[str, dict[str, Path]] = {}
        for path, side in zip(files, sides, strict=True):
            assert side is not None
            by_stem.setdefault(side[1], {})[side[0]] = path
        alone = [path for both in by_stem.values() if len(both) == 1 for path in both.values()]
        if not alone:
            return [(both[first], both[second]) for both in by_stem.values()]
        if len(files) != 2:
            raise CorpusError(_alone(alone[0], pair))
    if len(files) % 2:
        raise CorpusError(_alone(files[-1], pair))
    couples = list(zip(files[::2], files[1::2], strict=True))
    return [_in_order(couple, pair) for couple in couples]


def _alone(path: Path, pair: str) -> str:
    first, second = pair.split("-")
    return (
        f"{path}: has one column, and {pair} needs the text of both languages. Give a file with a "
        f"tab between {first} and {second}, or two files that are parallel line by line: "
        f"--pairs {pair}=FILE.{first},FILE.{second}."
    )


def _side(path: Path, languages: tuple[str, str]) -> tuple[str, str] | None:
    """The language in a file's name (the last of the two), and the rest of its path."""
    for match in reversed(list(re.finditer(r"[A-Za-z_]+", path.name))):
        code = canonical(match[0])
        if code in languages:
            return code, f"{path.parent}/{path.name[: match.start()]}|{path.name[match.end() :]}"
    # `en/a.txt` and `sw/a.txt`
    code = canonical(path.parent.name)
    return (code, f"{path.parent.parent}/|/{path.name}") if code in languages else None


def _in_order(couple: tuple[Path, Path], pair: str) -> tuple[Path, Path]:
    """Two files in the order of the pair's languages, where identification is sure of it."""
    texts = []
    for path in couple:
        lines = (line for line in read_lines(path) if isinstance(line, str) and line.strip())
        texts.append([line for _, line in zip(range(MAX_COMPARED), lines, strict=False)])
    swapped = are_swapped(texts[0], texts[1], pair.split("-"))
    return (couple[1], couple[0]) if swapped else couple
