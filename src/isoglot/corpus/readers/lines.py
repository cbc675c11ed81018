"""Plain text: one sentence or paragraph a line; a blank line, or the file's end, ends a document.

Paragraphs become sentences by the source's setting `split: sentences`.
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
class LinesReader(Reader):
    """Text of one language. A separating line is counted under `blank`."""

    name = "lines"
    kinds = ("text",)

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        document = 0
        for file, path in enumerate(files):
            inside = False
            for number, line in enumerate(read_lines(path), start=1):
                if isinstance(line, Skipped):
                    yield line.in_file(file)
                elif not line.strip():
                    yield Skipped("blank", line, number, file)
                    # blank lines in a row are one boundary
                    document += inside
                    inside = False
                else:
                    yield Record((line,), document, number, file)
                    inside = True
            document += inside
