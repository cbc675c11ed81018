"""Sentence pairs from files, one line at a time, so that memory does not grow with the file.

A file has a pair a line: two columns with a tab between (a column of ids is recognized), or
`first ||| second` as fast_align and awesome-align read it. Or two files have a sentence a line.
Every line gives a pair, so that line n of the output is of line n of the input; a line that cannot
be read gives an empty one and is counted.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from isoglot.corpus.reading.files import read_lines, require_file
from isoglot.corpus.reading.reader import Skipped
from isoglot.corpus.reading.text import require_lines
from isoglot.errors import CorpusError
from isoglot.evaluation.pairs import pair_reader
from isoglot.languages import canonical, is_language, split_pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

BARS = "|||"
_INSPECTED = 200
"""Lines from which the format is recognized."""
_COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}


class PairFiles:
    """The pairs of one file, or of two parallel ones."""

    def __init__(self, files: Sequence[Path], *, note: Callable[[str], None] | None = None) -> None:
        """Recognize the format; `note` is called with a sentence about columns of ids."""
        self.files = [file.expanduser() for file in files]
        for file in self.files:
            require_file(file)
            require_lines(
                file,
                "a pair with a tab between" if len(self.files) == 1 else "a sentence",
            )
        self.faults: Counter[str] = Counter()
        """Reason -> lines that gave an empty pair."""
        self._columns: tuple[int, int] | None = None
        if len(self.files) == 1 and not self._has_bars():
            reader = pair_reader(self.files[0], note)
            self._columns = reader.first - 1, reader.second - 1

    def __iter__(self) -> Iterator[tuple[str, str]]:
        if len(self.files) == 1:
            for line in read_lines(self.files[0]):
                yield self._split(line)
            return
        lines = zip_longest(*map(read_lines, self.files))
        for number, (first, second) in enumerate(lines, start=1):
            if first is None or second is None:
                short, long = self.files if first is None else self.files[::-1]
                raise CorpusError(
                    f"{short} has {number - 1:,} lines, and {long} has more. Give two files in "
                    "which line n is the translation of line n."
                )
            if isinstance(first, Skipped) or isinstance(second, Skipped):
                self.faults["not UTF-8, or too long"] += 1
                yield "", ""
            else:
                yield first, second

    def num_lines(self) -> int | None:
        """Lines of the first file; none if it is compressed, as reading it would take long."""
        file = self.files[0]
        if file.suffix in _COMPRESSED:
            return None
        with file.open("rb") as stream:
            blocks = iter(lambda: stream.read(1 << 20), b"")
            return sum(block.count(b"\n") for block in blocks)

    def languages(self) -> tuple[str, str] | None:
        """The languages in the names of the files: `en-de.tsv`, or `test.en` and `test.de`."""
        names = [file.stem if file.suffix in _COMPRESSED else file.name for file in self.files]
        codes: Sequence[str] | None
        if len(names) == 1:
            codes = split_pair(names[0].split(".")[0])
        else:
            codes = [name.rpartition(".")[2] for name in names]
        if codes is None or not all(is_language(code) and len(code) <= 7 for code in codes):
            return None
        return canonical(codes[0]), canonical(codes[1])

    def _split(self, line: str | Skipped) -> tuple[str, str]:
        if isinstance(line, Skipped):
            self.faults["not UTF-8, or too long"] += 1
        elif self._columns is None:
            first, bars, second = line.partition(BARS)
            if bars:
                return first, second
            if line.strip():
                self.faults[f"without {BARS}"] += 1
        else:
            cells = line.split("\t")
            if max(self._columns) < len(cells):
                return cells[self._columns[0]], cells[self._columns[1]]
            if line.strip():
                self.faults["with fewer columns"] += 1
        return "", ""

    def _has_bars(self) -> bool:
        """Whether pairs have ||| between them; a file with neither bars nor tabs is refused."""
        file = self.files[0]
        lines = [line for line in islice(read_lines(file), _INSPECTED) if isinstance(line, str)]
        some = [line for line in lines if line.strip()]
        bars, tabs = (sum(mark in line for line in some) for mark in (f" {BARS}", "\t"))
        if some and not bars and not tabs:
            raise CorpusError(
                f"{file}: its lines have neither a tab nor {BARS} between two sentences. Give such "
                "a file, or two files, one for each language."
            )
        return bars >= tabs and bool(bars)
