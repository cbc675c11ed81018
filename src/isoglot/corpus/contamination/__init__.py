"""Lines of evaluation files, which must not be trained on: gathered once, looked up in batches."""

from __future__ import annotations

from isoglot.corpus.contamination.index import (
    Excluded,
    Gathered,
    GatherTask,
    gather,
    write_index,
)

__all__ = ["Excluded", "GatherTask", "Gathered", "gather", "write_index"]
