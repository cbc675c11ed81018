"""Documents in two languages, joined by id, as pairs of paragraphs.

Two files of JSON lines, a document a line: documentation and its translation, an article in two
languages. Paragraphs are lines that are not blank; which of them translate each other is found by
their lengths (`isoglot.corpus.readers.alignment`), since most translations leave some out. A
paragraph that is in no pair is counted under `unaligned`.

The second file is held in memory. The first gives the order; documents are counted as in format
`keyed`: `unmatched`, `repeated`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.alignment import aligned
from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.objects import read_objects, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableReader(Reader):
    """Pairs of the paragraphs of documents that share an id in two files."""

    id: str = "id"
    """The field that holds the id of a document, the same in both languages."""
    field: str = "text"
    """The field that holds its text."""

    name = "comparable"
    kinds = ("pairs",)
    together = 2

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        first, second = files
        translations: dict[str, tuple[list[str], int]] = {}
        for found in self._documents(second, 1):
            if isinstance(found, Skipped):
                yield found
            else:
                key, paragraphs, number = found
                translations[key] = paragraphs, number
        for document, found in enumerate(self._documents(first, 0)):
            if isinstance(found, Skipped):
                yield found
                continue
            key, paragraphs, number = found
            if key not in translations:
                yield Skipped("unmatched", key, number, 0)
                continue
            yield from _paired(paragraphs, number, *translations.pop(key), document)
        for key, (_, number) in translations.items():
            yield Skipped("unmatched", key, number, 1)

    def _documents(self, path: Path, file: int) -> Iterator[tuple[str, list[str], int] | Skipped]:
        """The id, the paragraphs and the line of each document."""
        seen: set[str] = set()
        for number, found in read_objects(path):
            if isinstance(found, Skipped):
                yield found.in_file(file)
                continue
            key, text = text_at(found, self.id), text_at(found, self.field)
            if key is None or text is None:
                yield Skipped("no field", str(found), number, file)
            elif key in seen:
                yield Skipped("repeated", key, number, file)
            else:
                seen.add(key)
                yield key, [line for line in text.splitlines() if line.strip()], number


def _paired(
    first: list[str], line: int, second: list[str], other_line: int, document: int
) -> Iterator[Record | Skipped]:
    """The pairs of two documents, then what is left of the first, then of the second."""
    pairs = aligned(first, second)
    for i, j in pairs:
        yield Record((first[i], second[j]), document, line)
    if not pairs:
        yield Skipped("unaligned", line=line)
    for texts, number, taken, file in (
        (first, line, {i for i, _ in pairs}, 0),
        (second, other_line, {j for _, j in pairs}, 1),
    ):
        for index, text in enumerate(texts):
            if index not in taken:
                yield Skipped("unaligned", text, number, file)
