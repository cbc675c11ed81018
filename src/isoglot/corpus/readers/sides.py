"""Formats with a file for each language: which file is which language's.

Files are given two by two, `[a.en, a.de, b.en, b.de]`. Given as `[a.en, b.en, a.de, b.de]`, or the
second language's first, English would be paired with English: the names give that away.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def misplaced(files: Sequence[Path], languages: Sequence[str]) -> str | None:
    """Which file names the other language of the pair and not its own, as the end of a sentence."""
    for index, path in enumerate(files):
        if len(languages) != 2:
            return None
        own, other = languages[index % 2], languages[1 - index % 2]
        named = set(re.split(r"[^a-z0-9]+", path.name.lower()))
        if other.lower() in named and own.lower() not in named:
            return (
                f"{path.name} stands where a file of {own!r} should, and seems to be {other!r}; "
                f"give the files two by two, each time {languages[0]!r} first, then "
                f"{languages[1]!r}"
            )
    return None
