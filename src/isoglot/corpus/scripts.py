"""Which script a piece is written in, and which scripts a language of a corpus is written in.

The script of a letter is the first word of its Unicode name (LATIN, CYRILLIC, CJK, ...), that of a
piece the script of most of its letters. A language's scripts are those that a good part of its own
text is written in (Japanese has several): counted, not looked up, so that they are right for any
language that comes with text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.corpus.corpus import Corpus
    from isoglot.types import BoolArray, IntArray

NO_SCRIPT = -1
"""The script of a piece without letters: digits, punctuation, single bytes."""
_SAMPLED = 2000
_LEAST_SHARE = 0.1


def script_of(piece: str) -> str | None:
    """The script of most of a piece's letters; None where there are none."""
    found = Counter(
        unicodedata.name(letter, "UNNAMED").split(maxsplit=1)[0].split("-")[0]
        for letter in piece
        if letter.isalpha()
    )
    return max(sorted(found), key=lambda script: found[script]) if found else None


def scripts_of_pieces(pieces: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """The script of each piece as a number, and the scripts' names; `NO_SCRIPT` without letters."""
    found = [script_of(piece) for piece in pieces]
    names = tuple(sorted({script for script in found if script is not None}))
    numbers = {script: number for number, script in enumerate(names)}
    return np.array(
        [NO_SCRIPT if script is None else numbers[script] for script in found], np.int32
    ), names


def scripts_of_languages(corpus: Corpus, of_piece: IntArray, num_scripts: int) -> BoolArray:
    """(languages, scripts): is a tenth or more of the language's tokens with letters in it?"""
    counts = np.zeros((len(corpus.languages), num_scripts), np.int64)
    for source, entry in corpus.manifest.sources.items():
        for name in entry.languages:
            table = corpus.table(source, name, "train")
            codes = name.split("-") if entry.kind == "pairs" else [name]
            for code, column in zip(codes, table.columns, strict=True):
                rows = np.unique(
                    np.linspace(0, table.num_rows - 1, min(_SAMPLED, table.num_rows)).astype(int)
                )
                ids = [table.ids(column, int(row)) for row in rows]
                scripts = of_piece[np.concatenate([np.zeros(0, np.int32), *ids])]
                counts[corpus.languages.index(code)] += np.bincount(
                    scripts[scripts != NO_SCRIPT], minlength=num_scripts
                )
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.asarray(counts / totals >= _LEAST_SHARE)
