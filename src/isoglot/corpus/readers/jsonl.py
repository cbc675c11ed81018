"""JSON lines: an object a line, with a text in one field of it, or a pair in two.

A line is a document; line ends inside its text are those of its paragraphs. A field may lie inside
others: `translation.en` is the field `en` of the object in `translation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.objects import read_objects, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLinesReader(Reader):
    """Texts or pairs. What is no object is counted under `not JSON`, without a text `no field`."""

    field: str = "text"
    """The field that holds the text."""
    first: str = ""
    """For pairs, the field of the first language's text; by default the language's name."""
    second: str = ""
    """For pairs, the field of the second language's text."""

    name = "jsonl"
    kinds = ("text", "pairs")

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        fields = [self.field]
        if self.pairs:
            fields = [self.first or self.languages[0], self.second or self.languages[1]]
        document = 0
        for file, path in enumerate(files):
            for number, found in read_objects(path):
                if isinstance(found, Skipped):
                    yield found.in_file(file)
                    continue
                texts = tuple(text for name in fields if (text := text_at(found, name)) is not None)
                if len(texts) < len(fields):
                    yield Skipped("no field", str(found), number, file)
                else:
                    yield Record(texts, 0 if self.pairs else document, number, file)
                    document += 1
