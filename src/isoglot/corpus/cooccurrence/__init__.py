"""How often tokens stand near each other: counted once over a prepared corpus, kept on disk."""

from __future__ import annotations

from isoglot.corpus.cooccurrence.count import count_pairs
from isoglot.corpus.cooccurrence.settings import PairConfig
from isoglot.corpus.cooccurrence.table import PairTable

__all__ = ["PairConfig", "PairTable", "count_pairs"]
