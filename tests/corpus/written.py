"""Corpora written from token ids directly, without text, cleaning or a tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as List
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from isoglot.corpus import Corpus, Manifest
from isoglot.corpus.storage.manifest import Counts, SourceEntry, SplitEntry, TokenizerEntry
from isoglot.corpus.storage.shard_writer import ShardWriter, TokenRows
from isoglot.types import Vocabulary

VOCABULARY = Vocabulary(
    size=40,
    cls=0,
    sep=2,
    pad=1,
    mask=39,
    special=(0, 1, 2, 3, 39),
    word_starts=np.ones(40, np.bool_),
)
Sentences = List[List[int]]


def write_corpus(
    folder: Path,
    texts: Mapping[str, Sentences],
    *,
    pairs: Mapping[str, tuple[Sentences, Sentences]] | None = None,
    shard_tokens: int = 10**6,
    vocabulary: Vocabulary = VOCABULARY,
) -> Corpus:
    sources = {}
    columns = {"text": {language: {"ids": found} for language, found in texts.items()}}
    columns["pairs"] = {
        name: {"first": first, "second": second} for name, (first, second) in (pairs or {}).items()
    }
    for source, kind in (("text", "text"), ("pairs", "pairs")):
        if columns[source]:
            splits = {
                name: _write(folder, f"{source}/{name}", found, shard_tokens)
                for name, found in columns[source].items()
            }
            counts = {name: Counts(read=0, kept=0, heldout=0, dropped={}) for name in splits}
            sources[source] = SourceEntry(
                kind=kind,  # type: ignore[arg-type]
                languages={name: {"train": split} for name, split in splits.items()},
                counts=counts,
            )
    manifest = Manifest(
        isoglot="0",
        fingerprint=repr((sorted(texts.items()), pairs)),
        languages=tuple(sorted({*texts, *(n for name in pairs or {} for n in name.split("-"))})),
        tokenizer=TokenizerEntry(fingerprint="", size=vocabulary.size, files=()),
        sources=sources,
        settings={},
        inputs=(),
    )
    corpus = Corpus(folder, manifest)
    corpus.__dict__["vocabulary"] = vocabulary
    return corpus


def _write(
    folder: Path, prefix: str, columns: dict[str, Sentences], shard_tokens: int
) -> SplitEntry:
    writer = ShardWriter(folder, f"{prefix}/train", {}, shard_tokens=shard_tokens)
    chunk = TokenRows(
        {name: np.array([*chain.from_iterable(rows)], np.int32) for name, rows in columns.items()},
        {name: np.array([len(row) for row in rows], np.int32) for name, rows in columns.items()},
    )
    if "ids" in columns:
        chunk = replace(chunk, document=np.zeros(chunk.num_rows, np.int32))
    writer.append(chunk)
    shards = tuple(writer.close())
    return SplitEntry(shards=shards, rows=chunk.num_rows, tokens={})
