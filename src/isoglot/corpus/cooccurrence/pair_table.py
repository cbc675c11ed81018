"""Counts of token pairs: what is counted (`PairConfig`), and the mapped table (`PairTable`).

MLM-GC section 3.2 gives a neighbor at distance d the weight c/(d + 1); the authors' released
counter, like GloVe, c/d. The two differ by more than a constant. Weights are integers over a common
denominator until languages are merged, so sums are exact in any order.

A table is a folder: `keys.int64` (sorted; smaller id × vocabulary size + larger id), `logs.DTYPE`
(the log of each pair's count) and `pairs.json` (corpus, settings, sizes, SHA-256 of the files and
of itself), written last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from isoglot.corpus.storage.manifest import load_manifest, verify_files
from isoglot.corpus.storage.shards import FileEntry
from isoglot.ranges import Range, check_ranges
from isoglot.types import LongArray

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.storage.manifest import Verify
    from isoglot.types import BoolArray, FloatArray

FOLDER = "cooccurrence"
"""Folder of a corpus that holds pair tables, one subfolder for each setting, and phrase files."""
KEYS, LOGS, MANIFEST = "keys.int64", "logs", "pairs.json"
MAX_WINDOW = 15
"""Pairs are sorted as 32 bits (`kernels`), four of them the distance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairConfig:
    """Which token pairs are counted, and with what weight."""

    window: Annotated[int, Range(1, MAX_WINDOW)] = 2
    """Neighbors on each side, within a sentence."""
    weights: Literal["paper", "released"] = "paper"
    """A neighbor at distance d weighs 1/(d + 1) (paper) or 1/d (released code, GloVe)."""
    language_constants: bool = True
    """Multiply by tokens of the pivot language ÷ tokens of the language (the paper's c_lang)."""
    pivot_language: str | None = None
    """None: en, or in a corpus without en the language with the most tokens."""
    languages: tuple[str, ...] = ()
    """Languages to count, all into one table; empty: all."""
    sources: tuple[str, ...] = ()
    """Sources to count, each side of pairs in its language; empty: all of kind text."""
    min_count: Annotated[float, Range(0, 1e12)] = 0.0
    """Pairs with a smaller weighted count are dropped."""
    dtype: Literal["float32", "float16"] = "float32"
    """Type of the stored logs; float16 errs by up to 0.05 %, and saves 2 of 12 bytes."""
    memory_mib: Annotated[float, Range(1e-4, 1e8)] = 1024.0
    """Memory of counting, beside the mapped text, for a corpus of any size; changes no count."""

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def denominator(self) -> int:
        """The common denominator of all weights."""
        return math.lcm(*(distance + self._offset for distance in range(1, self.window + 1)))

    def numerators(self) -> LongArray:
        """The weight of a neighbor times the denominator, by distance from 0."""
        distances = range(1, self.window + 1)
        return np.array([0, *(self.denominator // (d + self._offset) for d in distances)], np.int64)

    @property
    def _offset(self) -> int:
        return 1 if self.weights == "paper" else 0


FORMAT = 1
REMEDY = "Remove the folder; the pairs are then counted again."


@dataclass(frozen=True, slots=True, kw_only=True)
class PairManifest:
    """All of pairs.json."""

    format: int = FORMAT
    pairs: int
    vocabulary_size: int
    language_constants: dict[str, float]
    """Language -> c_lang, the factor of its counts."""
    tokens: dict[str, int]
    """Language -> tokens that were counted."""
    counted: dict[str, Any]
    """What decides the counts: corpus, settings, version."""
    files: tuple[FileEntry, ...]

    @classmethod
    def read(cls, folder: Path) -> PairManifest:
        """Reads pairs.json; raises if it is missing or damaged."""
        return load_manifest(
            folder / MANIFEST,
            cls,
            format_version=FORMAT,
            missing=f"{folder}: holds no whole counts of pairs: it has no {MANIFEST}. {REMEDY}",
            remedy=REMEDY,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """Weighted counts of the token pairs that occur within the window."""

    keys: LongArray
    """Ascending."""
    log_counts: npt.NDArray[np.floating]
    """The log of the count of each key's pair, in either order."""
    vocabulary_size: int
    language_constants: dict[str, float]
    """Language -> c_lang, the factor of its counts."""

    @classmethod
    def open(cls, folder: Path, *, verify: Verify = "auto") -> PairTable:
        """Maps the files of a folder, which are verified as a corpus's are."""
        manifest = PairManifest.read(folder)
        verify_files(folder, manifest.files, verify=verify, remedy=REMEDY)
        dtype, number = np.dtype(manifest.counted["settings"]["dtype"]), manifest.pairs
        return cls(
            keys=map_array(folder / KEYS, np.dtype(np.int64), number),
            log_counts=map_array(folder / f"{LOGS}.{dtype}", dtype, number),
            vocabulary_size=manifest.vocabulary_size,
            language_constants=manifest.language_constants,
        )

    def lookup(self, first: LongArray, second: LongArray) -> tuple[FloatArray, BoolArray]:
        """The log counts of pairs, and which pairs are in the table."""
        size = self.vocabulary_size
        keys = np.minimum(first, second) * size + np.maximum(first, second)
        if not len(self.keys):
            return np.zeros(len(keys)), np.zeros(len(keys), np.bool_)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.log_counts[places].astype(np.float64), self.keys[places] == keys


def map_array(file: Path, dtype: np.dtype[Any], number: int) -> Any:
    """A raw file as an array, mapped copy-on-write."""
    if number == 0:
        return np.zeros(0, dtype)
    return np.memmap(file, dtype, "c", shape=(number,))
