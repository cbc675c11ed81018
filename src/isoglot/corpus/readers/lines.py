"""Plain text: one sentence a line; a blank line, or the end of a file, ends a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.files import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class LinesReader(Reader):
    """Sentences of one language. A separating line is counted under `blank`."""

    name = "lines"
    kind = "text"

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        document = 0
        for path in files:
            inside = False
            for line in read_lines(path):
                if isinstance(line, Skipped):
                    yield line
                elif not line.strip():
                    yield Skipped("blank")
                    # blank lines in a row are one boundary
                    document += inside
                    inside = False
                else:
                    yield Record((line,), document)
                    inside = True
            document += inside
