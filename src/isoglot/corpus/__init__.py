"""Raw files to a prepared corpus: readers, cleaning, tokenizer, shards, manifest. No torch."""

from __future__ import annotations

from isoglot.corpus.build import is_prepared, prepare
from isoglot.corpus.cells import SourceConfig
from isoglot.corpus.clean import CleanConfig
from isoglot.corpus.config import PrepareConfig
from isoglot.corpus.corpus import Corpus
from isoglot.corpus.duplicates import DuplicatesConfig
from isoglot.corpus.manifest import Manifest
from isoglot.corpus.pieces import TokenizerConfig
from isoglot.corpus.table import Shard, Table
from isoglot.corpus.times import Times
from isoglot.corpus.tokenizer import vocabulary_of
from isoglot.corpus.workshop import Progress

__all__ = [
    "CleanConfig",
    "Corpus",
    "DuplicatesConfig",
    "Manifest",
    "PrepareConfig",
    "Progress",
    "Shard",
    "SourceConfig",
    "Table",
    "Times",
    "TokenizerConfig",
    "is_prepared",
    "prepare",
    "vocabulary_of",
]
