"""The end of preparing: what the stages report, added up into the manifest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from isoglot import __version__
from isoglot.corpus.heldout import SPLITS
from isoglot.corpus.manifest import (
    Counts,
    FileEntry,
    Manifest,
    SourceEntry,
    SplitEntry,
    TokenizerEntry,
    fingerprint_of,
)

if TYPE_CHECKING:
    from isoglot.corpus.cleaned import Cleaned
    from isoglot.corpus.encode import Encoded
    from isoglot.corpus.shards import ShardEntry


def summarise(
    cleaned: list[Cleaned],
    encoded: list[Encoded],
    *,
    tokenizer: TokenizerEntry,
    settings: dict[str, Any],
    inputs: tuple[FileEntry, ...],
) -> Manifest:
    """The manifest of a corpus whose shards are all written."""
    sources: dict[str, SourceEntry] = {}
    languages: set[str] = set()
    shards: list[ShardEntry] = []
    for before, after in zip(cleaned, encoded, strict=True):
        cell = before.cell
        languages.update(cell.languages)
        entry = sources.setdefault(
            cell.source, SourceEntry(kind=cell.kind, languages={}, counts={})
        )
        entry.languages[cell.language] = {
            split: _split_entry(after.shards[split], cell.columns) for split in SPLITS
        }
        entry.counts[cell.language] = _counts(before, after)
        shards.extend(shard for split in SPLITS for shard in after.shards[split])
    return Manifest(
        isoglot=__version__,
        fingerprint=fingerprint_of(shards, tokenizer.fingerprint),
        languages=tuple(sorted(languages)),
        tokenizer=tokenizer,
        sources=sources,
        settings=settings,
        inputs=inputs,
    )


def _split_entry(shards: tuple[ShardEntry, ...], columns: tuple[str, ...]) -> SplitEntry:
    return SplitEntry(
        shards=shards,
        rows=sum(shard.rows for shard in shards),
        tokens={column: sum(shard.tokens[column] for shard in shards) for column in columns},
    )


def _counts(cleaned: Cleaned, encoded: Encoded) -> Counts:
    rows = {split: sum(s.rows for s in encoded.shards[split]) for split in SPLITS}
    dropped = Counter(cleaned.dropped)
    for reasons in encoded.dropped.values():
        dropped.update(reasons)
    return Counts(
        read=cleaned.read,
        kept=sum(rows.values()),
        heldout=rows["heldout"],
        dropped=dict(sorted(dropped.items())),
    )
