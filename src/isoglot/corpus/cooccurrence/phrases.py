"""Phrases: n-grams of high PMI that masking takes as one unit, and their matching in a text.

PMI-Masking (Levine et al., 2021), the baseline of MLM-GC. Reads a `.npy` file of `find_phrases`,
which ends with its own SHA-256; gives for each token of a text whether a masking unit (a phrase or
a single token) starts there.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numba import njit

from isoglot.atomic import write_bytes
from isoglot.corpus.cooccurrence.pair_table import FOLDER
from isoglot.errors import CorpusError
from isoglot.folders import with_home
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.engine.runner import Progress
    from isoglot.corpus.storage.corpus import Corpus
    from isoglot.types import BoolArray, IntArray, LongArray

_DIGEST = 32
"""Bytes of a SHA-256."""
PADDING = -1
"""Fills the rows of phrases that are shorter than the longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseConfig:
    """Which n-grams become phrases."""

    max_length: Annotated[int, Range(2, 20)] = 5
    """Tokens of the longest phrase; the shortest has two."""
    min_count: Annotated[int, Range(1, 10**12)] = 10
    """Occurrences in a language that an n-gram needs."""
    max_phrases: Annotated[int, Range(1, 10**8)] = 100_000
    """Phrases of a language: the highest PMI of each length in turn, and only above 0."""
    max_text_tokens: Annotated[int, Range(1, 10**12)] = 20_000_000
    """Tokens of each language that are searched, from the start of its text; bounds memory."""

    def __post_init__(self) -> None:
        check_ranges(self)


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
            content = _verified(with_home(file).read_bytes())
            return Phrases(np.load(BytesIO(content), allow_pickle=False))
        except (OSError, ValueError) as error:
            raise CorpusError(
                f"{file}: is not a phrase file ({error}). Write one with isoglot cooccurrence "
                "phrases, or leave masking.phrases out: phrases are then found in the corpus."
            ) from error

    def write(self, file: Path) -> None:
        """Writes a phrase file."""
        buffer = BytesIO()
        np.save(buffer, self.table)
        content = buffer.getvalue()
        write_bytes(file, content + sha256(content).digest())

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


def _verified(data: bytes) -> bytes:
    """The content of a phrase file without its SHA-256."""
    content, digest = data[:-_DIGEST], data[-_DIGEST:]
    if sha256(content).digest() != digest:
        raise ValueError("it is damaged, or another program wrote it")
    return content


def phrases_of(corpus: Corpus, config: PhraseConfig, progress: Progress | None = None) -> Path:
    """The phrase file in a corpus's folder, written if missing."""
    settings = json.dumps([corpus.fingerprint, asdict(config), _DIGEST])
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
