"""Readers of raw files, one file per format. To add one, write its class and list it here."""

from __future__ import annotations

from isoglot.corpus.readers.base import Kind, Reader, Record, Skipped
from isoglot.corpus.readers.keyed import KeyedReader
from isoglot.corpus.readers.lines import LinesReader
from isoglot.corpus.readers.pairs import PairsReader

READERS: tuple[type[Reader], ...] = (LinesReader, PairsReader, KeyedReader)
"""Every reader; settings choose one by its `name`."""

__all__ = ["READERS", "Kind", "Reader", "Record", "Skipped"]
