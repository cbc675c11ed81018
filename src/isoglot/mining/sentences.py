"""The sentences of one side: the lines of a file, each once, without blank lines."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.reading.files import read_lines
from isoglot.corpus.reading.reader import Skipped
from isoglot.corpus.reading.text import require_lines
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """Different sentences in the order in which they stand first, and what was left out."""

    name: str
    """The file, or which side it is."""
    texts: list[str]
    num_lines: int
    num_blank: int
    num_repeated: int
    num_unreadable: int
    """Lines that are not UTF-8 or longer than 64 MiB."""

    def __len__(self) -> int:
        return len(self.texts)

    def describe(self) -> str:
        """`a.txt: 1,000 lines, 980 sentences (15 repeated, 5 blank)`."""
        left_out = {
            "repeated": self.num_repeated,
            "blank": self.num_blank,
            "not UTF-8 or too long": self.num_unreadable,
        }
        counts = ", ".join(f"{number:,} {why}" for why, number in left_out.items() if number)
        said = f"{self.name}: {self.num_lines:,} lines, {len(self):,} sentences"
        return f"{said} ({counts})" if counts else said

    def fingerprint(self) -> str:
        """SHA-256 over the texts."""
        digest = hashlib.sha256()
        for text in self.texts:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()


def read_sentences(source: str | Path | Sequence[str], name: str) -> Sentences:
    """The sentences of a file, plain or compressed, or of a sequence of texts.

    Args:
        source: a path, or sentences.
        name: what a sequence is called in messages; a file is called by its path.
    """
    if isinstance(source, str | Path):
        name = str(source)
        require_lines(Path(source), "a sentence")
        lines: Iterable[str | Skipped] = read_lines(Path(source))
    else:
        lines = source
    texts: dict[str, None] = {}
    number = blank = repeated = unreadable = 0
    for line in lines:
        number += 1
        if isinstance(line, Skipped):
            unreadable += 1
            continue
        text = line.strip()
        if not text:
            blank += 1
        elif text in texts:
            repeated += 1
        else:
            texts[text] = None
    if not texts:
        raise CorpusError(f"{name}: has no sentences ({number:,} lines). Give one sentence a line.")
    return Sentences(
        name=name,
        texts=list(texts),
        num_lines=number,
        num_blank=blank,
        num_repeated=repeated,
        num_unreadable=unreadable,
    )
