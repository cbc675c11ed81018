"""Translations as tab-separated text: exactly two columns, the first language's text first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.files import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class PairsReader(Reader):
    """Pairs of translations, one a line. Another number of columns is counted under `columns`."""

    name = "tsv"
    kind = "pairs"

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        for path in files:
            for line in read_lines(path):
                yield line if isinstance(line, Skipped) else _split(line)


def _split(line: str) -> Record | Skipped:
    if not line.strip():
        return Skipped("blank")
    columns = tuple(line.split("\t"))
    return Record(columns) if len(columns) == 2 else Skipped("columns")
