"""Lines that occur more than once: hashed into partitions on disk, found one partition at a time.

    unit --HashRuns--> hashes, by partition --find_duplicates--> places --hand_out--> rows of units

No process ever holds the hashes of more than one partition. Of equal lines the first in corpus
order is kept, whatever the number of partitions and workers.
"""

from __future__ import annotations

from isoglot.corpus.duplicates.config import DuplicatesConfig
from isoglot.corpus.duplicates.find import Found, Search, find_duplicates, hand_out
from isoglot.corpus.duplicates.keys import keys_for, similar_keys_for
from isoglot.corpus.duplicates.runs import HashRuns, place_of

__all__ = [
    "DuplicatesConfig",
    "Found",
    "HashRuns",
    "Search",
    "find_duplicates",
    "hand_out",
    "keys_for",
    "place_of",
    "similar_keys_for",
]
