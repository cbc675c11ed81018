"""The last stage: stretches of cleaned text of one split of a cell become shards of token ids."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cells import Cell
from isoglot.corpus.cleaned import CleanRecord, Stretch
from isoglot.corpus.dropped import DroppedLines
from isoglot.corpus.fit import Fit, fit_of
from isoglot.corpus.heldout import Split
from isoglot.corpus.pieces import PieceEncoder
from isoglot.corpus.shards import Chunk, ShardEntry, ShardWriter
from isoglot.corpus.tokenizer import Encoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.types import BoolArray, IntArray

_CHUNK_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFacts:
    """The tokenizer, as encoding needs to know it."""

    folder: Path
    sha256: str
    """Of all its files."""
    pieces: bool
    """Whether SentencePiece trained it here, or for another corpus, and so can encode for it."""
    forbidden: tuple[int, ...]
    """Special ids that no text may hold (all but the unknown token's)."""
    unknown: int | None
    spelled: tuple[int, ...]
    """Ids that are single bytes."""

    def encoder(self) -> Encoder | PieceEncoder:
        """What turns texts into ids."""
        return PieceEncoder(self.folder) if self.pieces else Encoder(self.folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeTask:
    """All that is needed to encode one group of stretches, here or elsewhere."""

    cell: Cell
    split: Split
    number: int
    """Which group of the split it is."""
    stretches: tuple[Stretch, ...]
    folder: Path
    """Where shards are written, until they are all there."""
    tokenizer: TokenizerFacts
    shard_tokens: int
    dropped: Path | None
    """Where dropped lines are written."""

    @property
    def bytes(self) -> int:
        """The size of the text."""
        return sum(stretch.bytes for stretch in self.stretches)

    @property
    def name(self) -> str:
        """What a message calls it."""
        return f"{self.cell.folder}/{self.split}, part {self.number + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """The shards of one group, and the records that are not in them."""

    shards: tuple[ShardEntry, ...]
    dropped: dict[str, int]
    fits: tuple[Fit, ...]
    """How well the tokenizer fits each column."""
    seconds: float


def is_whole(task: EncodeTask, encoded: Encoded) -> bool:
    """Are the shards of a finished group still there?"""
    paths = [(task.folder / shard.file, shard.bytes) for shard in encoded.shards]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def encode_group(task: EncodeTask) -> Encoded:
    """Encodes the text of one group."""
    started = time.monotonic()
    cell, facts = task.cell, task.tokenizer
    encoder = facts.encoder()
    writer = ShardWriter(
        task.folder,
        f"{cell.folder}/{task.split}-{task.number:05d}",
        {"source": cell.source, "kind": cell.kind, "languages": " ".join(cell.languages)},
        shard_tokens=task.shard_tokens,
    )
    reasons: Counter[str] = Counter()
    fits = [Fit()] * len(cell.columns)
    with DroppedLines(task.dropped, cell) as dropped:
        for stretch, rows in _chunks(task.stretches):
            kept = [row for row in rows if row.reason is None]
            encoded = [
                encoder.encode([row.texts[column] for row in kept])
                for column in range(len(cell.columns))
            ]
            for column, (ids, _) in enumerate(encoded):
                texts = [row.texts[column] for row in kept]
                fits[column] += fit_of(texts, ids, facts.unknown, facts.spelled)
            chunk, faults = _chunk(kept, cell, encoded, facts.forbidden)
            writer.append(chunk)
            faulty = [row._replace(reason=fault) for row, fault in zip(kept, faults, strict=True)]
            for row in [*rows, *faulty]:
                if row.reason is not None:
                    reasons[row.reason] += 1
                    dropped.write(stretch.file, row.line, row.reason, row.texts)
    return Encoded(
        shards=tuple(writer.close()),
        dropped=dict(sorted(reasons.items())),
        fits=tuple(fits),
        seconds=time.monotonic() - started,
    )


def _chunks(stretches: tuple[Stretch, ...]) -> Iterator[tuple[Stretch, list[CleanRecord]]]:
    for stretch in stretches:
        records = stretch.records()
        while rows := list(islice(records, _CHUNK_ROWS)):
            yield stretch, rows


def _chunk(
    rows: list[CleanRecord],
    cell: Cell,
    encoded: list[tuple[IntArray, IntArray]],
    forbidden: tuple[int, ...],
) -> tuple[Chunk, list[str | None]]:
    """The rows that can be encoded, and for each row why it cannot.

    `no tokens`: the tokenizer leaves nothing of a text. `special`: the text spells a special token
    and the tokenizer takes it for one, which would make it a mask or a separator in training.
    """
    special = np.zeros(len(rows), dtype=np.bool_)
    without = np.zeros(len(rows), dtype=np.bool_)
    for ids, lengths in encoded:
        owners = np.repeat(np.arange(len(rows)), lengths)
        special[owners[np.isin(ids, forbidden)]] = True
        without |= lengths == 0
    special &= ~without
    keep = ~(special | without)
    kept = [_select(ids, lengths, keep) for ids, lengths in encoded]
    document = np.array([row.document for row in rows], dtype=np.int32)[keep]
    chunk = Chunk(
        tokens={column: ids for column, (ids, _) in zip(cell.columns, kept, strict=True)},
        lengths={column: lengths for column, (_, lengths) in zip(cell.columns, kept, strict=True)},
        document=document if cell.kind == "text" else None,
    )
    faults: list[str | None] = [None] * len(rows)
    for reason, found in (("special", special), ("no tokens", without)):
        for row in np.flatnonzero(found).tolist():
            faults[row] = reason
    return chunk, faults


def _select(ids: IntArray, lengths: IntArray, keep: BoolArray) -> tuple[IntArray, IntArray]:
    return ids[np.repeat(keep, lengths)], lengths[keep]
