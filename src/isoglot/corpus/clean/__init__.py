"""Cleans records before they are tokenized, and says why the ones it drops are dropped.

Normalising changes a text and drops nothing. The checks then keep a record or name the reason it is
dropped for; the reasons are counted into the manifest.
"""

from __future__ import annotations

from isoglot.corpus.clean.cleaner import Cleaner, why_dropped
from isoglot.corpus.clean.normal import SPACE_MARK, UNSEEN, normalise
from isoglot.corpus.clean.reasons import REASONS
from isoglot.corpus.clean.settings import CleanConfig

__all__ = [
    "REASONS",
    "SPACE_MARK",
    "UNSEEN",
    "CleanConfig",
    "Cleaner",
    "normalise",
    "why_dropped",
]
