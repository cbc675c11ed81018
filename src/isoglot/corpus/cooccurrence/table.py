"""The finished counts of a corpus, mapped: sorted keys, and the log of a count for each.

The key of a pair is `smaller id × vocabulary size + larger id`; a pair that is not there was never
seen (or is below the floor). pairs.json beside the files says what was counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isoglot.corpus.cooccurrence.runs import mapped
from isoglot.errors import CorpusError
from isoglot.types import FloatArray, LongArray

if TYPE_CHECKING:
    from pathlib import Path

KEYS, LOGS, ABOUT = "keys.int64", "logs", "pairs.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """Weighted counts of the pairs of a vocabulary that were seen near each other."""

    keys: LongArray
    """Ascending."""
    logs: npt.NDArray[np.floating]
    """Log of what the pair of each key counts, either way round."""
    size: int
    """Of the vocabulary."""
    constants: dict[str, float]
    """Language -> what its counts were multiplied with."""

    @classmethod
    def open(cls, folder: Path) -> PairTable:
        """Maps the counts of a folder."""
        try:
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            kept = np.dtype(about["counted"]["settings"]["kept"])
            return cls(
                keys=mapped(folder / KEYS, np.dtype(np.int64), about["pairs"]),
                logs=mapped(folder / f"{LOGS}.{kept}", kept, about["pairs"]),
                size=about["size"],
                constants=about["constants"],
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorpusError(
                f"{folder}: does not hold whole counts of pairs ({error}). Remove the folder; the "
                "pairs are then counted again."
            ) from error

    def find(self, first: LongArray, second: LongArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """The logs of the counts of pairs, and which of them were seen at all."""
        asked = np.minimum(first, second) * self.size + np.maximum(first, second)
        if not len(self.keys):
            return np.zeros(len(asked)), np.zeros(len(asked), np.bool_)
        places = np.minimum(np.searchsorted(self.keys, asked), len(self.keys) - 1)
        return self.logs[places].astype(np.float64), self.keys[places] == asked
