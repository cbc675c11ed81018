"""Translations in two files that are parallel line by line, as the Moses tools keep them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.files import read_lines
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class MosesReader(Reader):
    """Line i of one file and line i of the other. A line that is blank in both is `blank`."""

    name = "moses"
    kinds = ("pairs",)
    together = 2

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        first, second = files
        lines = zip_longest(read_lines(first), read_lines(second))
        for number, (one, other) in enumerate(lines, start=1):
            if one is None or other is None:
                shorter, longer = number - 1, number + sum(1 for _ in lines)
                counts = (shorter, longer) if one is None else (longer, shorter)
                raise CorpusError(
                    f"{first}: has {counts[0]:,} lines, but {second} has {counts[1]:,}. Lines are "
                    "missing in one of them, so that the pairs after them are wrong: fetch or make "
                    "both again."
                )
            if isinstance(one, Skipped):
                yield one
            elif isinstance(other, Skipped):
                yield other.in_file(1)
            elif not one.strip() and not other.strip():
                yield Skipped("blank", line=number)
            else:
                yield Record((one, other), 0, number)
