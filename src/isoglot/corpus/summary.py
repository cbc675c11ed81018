"""The end of preparing: what the stages report, added up into the manifest."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isoglot import __version__
from isoglot.corpus.fit import Fit
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
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.corpus.cells import Cell
    from isoglot.corpus.cleaned import Cleaned, CleanTask
    from isoglot.corpus.encode import Encoded, EncodeTask
    from isoglot.corpus.heldout import Split
    from isoglot.corpus.shards import ShardEntry

Shards = dict[tuple[str, "Split"], list["ShardEntry"]]
"""(folder of a cell, split) -> its shards under their final names."""


def number_shards(
    tasks: Sequence[EncodeTask], encoded: Sequence[Encoded], output: Path
) -> tuple[Shards, dict[Path, Path]]:
    """The shards of every cell, numbered, and where each lies -> where it belongs."""
    shards: Shards = defaultdict(list)
    moves: dict[Path, Path] = {}
    for task, found in zip(tasks, encoded, strict=True):
        for shard in found.shards:
            entries = shards[task.cell.folder, task.split]
            name = f"{task.cell.folder}/{task.split}-{len(entries):05d}.arrow"
            moves[task.folder / shard.file] = output / name
            entries.append(replace(shard, file=name))
    return shards, moves


def summarise(
    cells: Sequence[Cell],
    cleaned: Sequence[tuple[CleanTask, Cleaned]],
    encoded: Sequence[tuple[EncodeTask, Encoded]],
    shards: Shards,
    *,
    tokenizer: TokenizerEntry,
    settings: dict[str, Any],
    inputs: tuple[FileEntry, ...],
) -> Manifest:
    """The manifest of a corpus whose shards are all written."""
    sources: dict[str, SourceEntry] = {}
    for cell in cells:
        entry = sources.setdefault(
            cell.source, SourceEntry(kind=cell.kind, languages={}, counts={})
        )
        splits = {split: _split_entry(shards[cell.folder, split], cell) for split in SPLITS}
        entry.languages[cell.language] = splits
        entry.counts[cell.language] = _counts(
            [found for task, found in cleaned if task.unit.cell.folder == cell.folder],
            [found for task, found in encoded if task.cell.folder == cell.folder],
            splits,
        )
    every = [shard for of_cell in shards.values() for shard in of_cell]
    return Manifest(
        isoglot=__version__,
        fingerprint=fingerprint_of(every, tokenizer.fingerprint),
        languages=tuple(sorted({language for cell in cells for language in cell.languages})),
        tokenizer=replace(tokenizer, fits=_fits(encoded)),
        sources=sources,
        settings=settings,
        inputs=inputs,
    )


def _split_entry(shards: Sequence[ShardEntry], cell: Cell) -> SplitEntry:
    return SplitEntry(
        shards=tuple(shards),
        rows=sum(shard.rows for shard in shards),
        tokens={column: sum(shard.tokens[column] for shard in shards) for column in cell.columns},
    )


def _counts(
    cleaned: Sequence[Cleaned], encoded: Sequence[Encoded], splits: dict[Split, SplitEntry]
) -> Counts:
    dropped: Counter[str] = Counter()
    contaminated: Counter[str] = Counter()
    for unit in cleaned:
        dropped.update(unit.dropped)
        contaminated.update(unit.contaminated)
    for group in encoded:
        dropped.update(group.dropped)
    counts = Counts(
        lines=sum(unit.lines for unit in cleaned),
        bytes=sum(unit.bytes for unit in cleaned),
        read=sum(unit.read for unit in cleaned),
        kept=sum(entry.rows for entry in splits.values()),
        heldout=splits["heldout"].rows,
        dropped=dict(sorted(dropped.items())),
        contaminated=dict(sorted(contaminated.items())),
    )
    assert counts.read == counts.kept + dropped.total(), counts
    return counts


def _fits(encoded: Sequence[tuple[EncodeTask, Encoded]]) -> dict[str, Fit]:
    """Language -> what all its text became."""
    fits: dict[str, Fit] = {}
    for task, found in encoded:
        for language, fit in zip(task.cell.languages, found.fits, strict=True):
            fits[language] = fits.get(language, Fit()) + fit
    return dict(sorted(fits.items()))
