"""Translations in two files, `id TAB text` each, joined by id: verses, documents, segments.

The first file gives the order. A line counts as one record, except that the two lines of a pair
count as one; an id that only one file has is counted under `unmatched`, an id a file has already
given under `repeated`, a line without a tab under `columns`. The second file is held in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.files import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedReader(Reader):
    """Pairs of the texts that share an id in two files: the first language's, the second's."""

    name = "keyed"
    kinds = ("pairs",)
    together = 2

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        first, second = files
        translations: dict[str, tuple[str, int]] = {}
        for entry in _entries(second, 1):
            if isinstance(entry, Skipped):
                yield entry
            else:
                key, text, number = entry
                translations[key] = text, number
        for entry in _entries(first, 0):
            if isinstance(entry, Skipped):
                yield entry
                continue
            key, text, number = entry
            if key in translations:
                translation, _ = translations.pop(key)
                yield Record((text, translation), 0, number, 0)
            else:
                yield Skipped("unmatched", f"{key}\t{text}", number, 0)
        for key, (text, number) in translations.items():
            yield Skipped("unmatched", f"{key}\t{text}", number, 1)


def _entries(path: Path, file: int) -> Iterator[tuple[str, str, int] | Skipped]:
    """Each new id of a file with its text and line."""
    seen: set[str] = set()
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, Skipped):
            yield line.in_file(file)
            continue
        if not line.strip():
            yield Skipped("blank", line, number, file)
            continue
        key, tab, text = line.partition("\t")
        if not tab:
            yield Skipped("columns", line, number, file)
        elif key in seen:
            yield Skipped("repeated", line, number, file)
        else:
            seen.add(key)
            yield key, text, number
