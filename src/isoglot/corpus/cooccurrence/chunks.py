"""A corpus cut into chunks of consecutive sentences of one language, small enough to count at once.

Reads the corpus's manifest and the offsets of its shards; gives for each chunk the ranges of rows
that it takes from shards, so that a chunk is counted in the mapped files without copying them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cells import columns_of
from isoglot.corpus.table import Shard
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.cooccurrence.settings import PairConfig
    from isoglot.corpus.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows [first, last) of a column of a shard."""

    shard: Shard
    column: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is counted at once."""

    language: str
    pieces: tuple[Piece, ...]
    num_tokens: int


def columns_by_language(corpus: Corpus, config: PairConfig) -> dict[str, list[tuple[Shard, str]]]:
    """Language -> the (shard, column)s of its training text, in the order of the languages."""
    found: dict[str, list[tuple[Shard, str]]] = {language: [] for language in corpus.languages}
    sources = config.sources or corpus.sources("text")
    if not sources:
        raise CorpusError(
            f"{corpus.folder}: has no source of kind 'text' to count pairs in. Name sources of "
            "translations in pairs.sources."
        )
    for source in sources:
        if source not in corpus.manifest.sources:
            hint = nearest(source, corpus.manifest.sources)
            raise CorpusError(f"pairs.sources: {corpus.folder} has no source {source!r}; {hint}")
        entry = corpus.manifest.sources[source]
        for name in entry.languages:
            table = corpus.table(source, name, "train")
            codes = name.split("-") if entry.kind == "pairs" else [name]
            for code, column in zip(codes, columns_of(entry.kind), strict=True):
                found[code] += [(shard, column) for shard in table.shards]
    return {language: columns for language, columns in found.items() if columns}


def cut(language: str, columns: list[tuple[Shard, str]], most: int) -> Iterator[Chunk]:
    """The chunks of one language, of at most so many tokens; a longer sentence is one alone."""
    pieces: list[Piece] = []
    room = most
    for shard, column in columns:
        offsets = shard.offsets(column)
        first = 0
        while first < shard.num_rows:
            last = int(np.searchsorted(offsets, int(offsets[first]) + room, "right")) - 1
            if last <= first and pieces:
                yield Chunk(language, tuple(pieces), most - room)
                pieces, room = [], most
                continue
            last = min(max(last, first + 1), shard.num_rows)
            pieces.append(Piece(shard, column, first, last))
            room -= int(offsets[last] - offsets[first])
            first = last
    if pieces:
        yield Chunk(language, tuple(pieces), most - room)
