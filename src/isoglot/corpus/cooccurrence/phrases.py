"""Phrases: n-grams of high PMI that masking takes as one unit, and their matching in a text.

PMI-Masking (Levine et al., 2021), the baseline of MLM-GC. Reads a `.npy` file of `find_phrases`;
gives for each token of a text whether a masking unit (a phrase or a single token) starts there.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from isoglot.corpus.cooccurrence.pair_table import FOLDER
from isoglot.errors import CorpusError, require

if TYPE_CHECKING:
    from isoglot.corpus.engine.runner import Progress
    from isoglot.corpus.storage.corpus import Corpus
    from isoglot.types import BoolArray, IntArray, LongArray

PADDING = -1
"""Fills the rows of phrases that are shorter than the longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseConfig:
    """Which n-grams become phrases."""

    max_length: int = 5
    """Tokens of the longest phrase; the shortest has two."""
    min_count: int = 10
    """Occurrences in a language that an n-gram needs."""
    max_phrases: int = 100_000
    """Phrases of a language: the highest PMI of each length in turn, and only above 0."""
    max_text_tokens: int = 20_000_000
    """Tokens of each language that are searched, from the start of its text; bounds memory."""

    def __post_init__(self) -> None:
        require(self.max_length >= 2, "phrases.max_length must be 2 or more")
        for name in ("min_count", "max_phrases", "max_text_tokens"):
            require(getattr(self, name) >= 1, f"phrases.{name} must be 1 or more")


class Phrases:
    """A set of phrases as a trie of sorted keys, one level for each length.

    The key of a prefix is the number of the prefix that is a token shorter × `size` + its last
    token, so a text is matched by one sorted search per length.
    """

    def __init__(self, table: IntArray) -> None:
        """`table` has a phrase in each row, filled with `PADDING`."""
        self.table = table
        self.size = int(table.max(initial=0)) + 1
        self._levels: list[tuple[LongArray, BoolArray]] = []
        rows, nodes = table, table[:, 0].astype(np.int64)
        for n in range(2, table.shape[1] + 1):
            longer = rows[:, n - 1] != PADDING
            rows, nodes = rows[longer], nodes[longer]
            keys, nodes = np.unique(nodes * self.size + rows[:, n - 1], return_inverse=True)
            is_phrase = np.zeros(len(keys), np.bool_)
            ends = np.ones(len(rows), np.bool_)
            if n < table.shape[1]:
                ends = rows[:, n] == PADDING
            is_phrase[nodes[ends]] = True
            self._levels.append((keys, is_phrase))

    @staticmethod
    @lru_cache(maxsize=4)
    def open(file: str) -> Phrases:
        """The phrases of a file of `find_phrases`; the last four files are kept in memory."""
        try:
            return Phrases(np.load(Path(file).expanduser(), allow_pickle=False))
        except (OSError, ValueError) as error:
            raise CorpusError(
                f"{file}: is no phrase file ({error}). Write one with isoglot cooccurrence "
                "phrases, or leave masking.phrases out: phrases are then found in the corpus."
            ) from error

    def starts(self, ids: IntArray) -> BoolArray:
        """For each token: does a unit start here? The longest phrase is taken, left to right."""
        longest = np.ones(len(ids), np.int64)
        places = np.flatnonzero(ids < self.size)
        nodes = ids[places].astype(np.int64)
        for n, (keys, is_phrase) in enumerate(self._levels, start=2):
            inside = places + n - 1 < len(ids)
            places, nodes = places[inside], nodes[inside]
            following = ids[places + n - 1]
            if not len(keys):
                break
            wanted = nodes * self.size + following
            found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            matches = (keys[found] == wanted) & (following < self.size)
            places, nodes = places[matches], found[matches]
            longest[places[is_phrase[nodes]]] = n
        starts: BoolArray = _starts_left_to_right(longest)
        return starts


def phrases_of(corpus: Corpus, config: PhraseConfig, progress: Progress | None = None) -> Path:
    """The phrase file in a corpus's folder, written if missing."""
    settings = json.dumps([corpus.fingerprint, asdict(config)])
    file = corpus.folder / FOLDER / f"phrases-{sha256(settings.encode()).hexdigest()[:16]}.npy"
    if not file.exists():
        from isoglot.corpus.cooccurrence.find_phrases import find_phrases

        find_phrases(corpus, config, file, progress)
    return file


@njit(cache=True)
def _starts_left_to_right(longest: LongArray) -> BoolArray:  # pragma: no cover - compiled
    """Take the unit at the first token, continue behind it, and so on."""
    starts = np.zeros(len(longest), np.bool_)
    place = 0
    while place < len(longest):
        starts[place] = True
        place += longest[place]
    return starts
