"""The last stage: the cleaned text of a cell becomes shards of token ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cells import Cell
from isoglot.corpus.cleaned import Cleaned
from isoglot.corpus.heldout import SPLITS, Split
from isoglot.corpus.pieces import PieceEncoder
from isoglot.corpus.shards import Chunk, ShardEntry, ShardWriter
from isoglot.corpus.tokenizer import Encoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.types import BoolArray, IntArray

_CHUNK_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeTask:
    """All that is needed to encode one cell, in this process or another."""

    cleaned: Cleaned
    corpus: Path
    tokenizer: Path
    trained_here: bool
    """Whether the tokenizer is SentencePiece's, trained on this corpus."""
    forbidden: tuple[int, ...]
    """Special ids that no text may hold (all but the unknown token's)."""
    shard_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """The shards of one cell, and the records that could not be encoded."""

    cell: Cell
    shards: dict[Split, tuple[ShardEntry, ...]]
    dropped: dict[Split, dict[str, int]]


def encode_cell(task: EncodeTask) -> Encoded:
    """Encodes both splits of one cell."""
    encoder = PieceEncoder(task.tokenizer) if task.trained_here else Encoder(task.tokenizer)
    shards: dict[Split, tuple[ShardEntry, ...]] = {}
    dropped: dict[Split, dict[str, int]] = {}
    for split in SPLITS:
        shards[split], dropped[split] = _encode_split(task, encoder, split)
    return Encoded(cell=task.cleaned.cell, shards=shards, dropped=dropped)


def _encode_split(
    task: EncodeTask, encoder: Encoder | PieceEncoder, split: Split
) -> tuple[tuple[ShardEntry, ...], dict[str, int]]:
    cell = task.cleaned.cell
    writer = ShardWriter(
        task.corpus,
        f"{cell.folder}/{split}",
        {"source": cell.source, "kind": cell.kind, "languages": " ".join(cell.languages)},
        shard_tokens=task.shard_tokens,
    )
    dropped: Counter[str] = Counter()
    records = task.cleaned.records(split)
    while rows := list(islice(records, _CHUNK_ROWS)):
        chunk, reasons = _encode_chunk(rows, cell, encoder, task.forbidden)
        dropped.update(reasons)
        writer.append(chunk)
    return tuple(writer.close()), dict(dropped)


def _encode_chunk(
    rows: Sequence[tuple[int, tuple[str, ...]]],
    cell: Cell,
    encoder: Encoder | PieceEncoder,
    forbidden: tuple[int, ...],
) -> tuple[Chunk, dict[str, int]]:
    """The rows that can be encoded, and why the others cannot.

    `no tokens`: the tokenizer leaves nothing of a text. `special`: the text spells a special token
    and the tokenizer takes it for one, which would make it a mask or a separator in training.
    """
    encoded = [
        encoder.encode([texts[column] for _, texts in rows]) for column in range(len(cell.columns))
    ]
    special = np.zeros(len(rows), dtype=np.bool_)
    without = np.zeros(len(rows), dtype=np.bool_)
    for ids, lengths in encoded:
        owners = np.repeat(np.arange(len(rows)), lengths)
        special[owners[np.isin(ids, forbidden)]] = True
        without |= lengths == 0
    special &= ~without
    keep = ~(special | without)
    kept = [_select(ids, lengths, keep) for ids, lengths in encoded]
    document = np.array([number for number, _ in rows], dtype=np.int32)[keep]
    chunk = Chunk(
        tokens={column: ids for column, (ids, _) in zip(cell.columns, kept, strict=True)},
        lengths={column: lengths for column, (_, lengths) in zip(cell.columns, kept, strict=True)},
        document=document if cell.kind == "text" else None,
    )
    reasons = {"special": int(special.sum()), "no tokens": int(without.sum())}
    return chunk, {reason: number for reason, number in reasons.items() if number}


def _select(ids: IntArray, lengths: IntArray, keep: BoolArray) -> tuple[IntArray, IntArray]:
    return ids[np.repeat(keep, lengths)], lengths[keep]
