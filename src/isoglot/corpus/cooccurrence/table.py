"""The finished counts of a corpus, mapped: sorted keys and a count for each.

The key of a pair is `smaller id × vocabulary size + larger id`; a pair that is not there was never
seen (or is below the floor). pairs.json beside the files says what was counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cooccurrence.kernels import Counts
from isoglot.corpus.cooccurrence.runs import mapped
from isoglot.errors import CorpusError
from isoglot.types import LongArray

if TYPE_CHECKING:
    from pathlib import Path


KEYS, COUNTS, ABOUT = "keys.int64", "counts.float32", "pairs.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """Weighted counts of the pairs of a vocabulary that were seen near each other."""

    keys: LongArray
    """Ascending."""
    counts: Counts
    """What the pair of each key counts, either way round."""
    size: int
    """Of the vocabulary."""
    constants: dict[str, float]
    """Language -> what its counts were multiplied with."""

    @classmethod
    def open(cls, folder: Path) -> PairTable:
        """Maps the counts of a folder."""
        try:
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            return cls(
                keys=mapped(folder / KEYS, np.int64, about["pairs"]),
                counts=mapped(folder / COUNTS, np.float32, about["pairs"]),
                size=about["size"],
                constants=about["constants"],
            )
        except (OSError, ValueError, KeyError) as error:
            raise CorpusError(
                f"{folder}: does not hold whole counts of pairs ({error}). Remove the folder; the "
                "pairs are then counted again."
            ) from error
