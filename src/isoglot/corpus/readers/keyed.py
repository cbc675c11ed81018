"""Translations in two files, `id TAB text` each, joined by id: verses, documents, segments.

The first file gives the order. A line counts as one record, except that the two lines of a pair
count as one; an id that only one file has is counted under `unmatched`, an id a file has already
given under `repeated`, a line without a tab under `columns`. The second file is held in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.files import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class KeyedReader(Reader):
    """Pairs of the texts that share an id in two files: the first language's, the second's."""

    name = "keyed"
    kind = "pairs"

    @override
    def check_files(self, files: Sequence[Path]) -> str | None:
        if len(files) == 2:
            return None
        return (
            f"format 'keyed' joins exactly two files, the first language's first; got {len(files)}"
        )

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        first, second = files
        translations: dict[str, str] = {}
        for entry in _entries(second):
            if isinstance(entry, Skipped):
                yield entry
            else:
                translations[entry[0]] = entry[1]
        for entry in _entries(first):
            if isinstance(entry, Skipped):
                yield entry
                continue
            key, text = entry
            translation = translations.pop(key, None)
            yield Skipped("unmatched") if translation is None else Record((text, translation))
        for _ in translations:
            yield Skipped("unmatched")


def _entries(path: Path) -> Iterator[tuple[str, str] | Skipped]:
    seen: set[str] = set()
    for line in read_lines(path):
        if isinstance(line, Skipped):
            yield line
            continue
        if not line.strip():
            yield Skipped("blank")
            continue
        key, tab, text = line.partition("\t")
        if not tab:
            yield Skipped("columns")
        elif key in seen:
            yield Skipped("repeated")
        else:
            seen.add(key)
            yield key, text
