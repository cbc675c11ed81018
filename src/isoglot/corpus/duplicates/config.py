"""Settings of duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatesConfig:
    """Which lines count as repeated; of each only the first is kept."""

    scope: Literal["none", "source", "language"] = "source"
    """Where a line is looked for: nowhere, in its source and language, or in its language in all
    sources (a source then has what those before it have not). Pairs are compared with pairs of the
    same languages, by both sides."""
    near: bool = False
    """Whether lines that are nearly the same count too."""
    similarity: float = 0.8
    """How much of their 5-character pieces two lines share that are nearly the same."""
    partitions: int | None = None
    """Into how many parts lines are divided by their hash; a process holds one at a time. None
    chooses by the size of the files."""
