"""The encoding stage: groups of slices of cleaned text become shards of token ids.

Tokens are counted meanwhile. A word is the text between spaces; in scripts that write no spaces
between words every character counts as one.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cleaning.dropped_lines import DroppedLines
from isoglot.corpus.cleaning.slices import TextSlice
from isoglot.corpus.reading.sources import Subset
from isoglot.corpus.storage.manifest import TokenizerStats
from isoglot.corpus.storage.shard_writer import ShardWriter, TokenRows
from isoglot.corpus.storage.shards import ShardEntry, Split
from isoglot.corpus.tokenization.encoders import EncoderName, open_encoder
from isoglot.corpus.tokenization.vocabulary import NO_SPACE_RANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isoglot.corpus.cleaning.clean_text import CleanRecord
    from isoglot.types import BoolArray, IntArray

_BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerInfo:
    """What encoding needs to know of the tokenizer."""

    folder: Path
    sha256: str
    """Of all its files."""
    encoder: EncoderName
    """The fastest encoder that gives its ids."""
    special: tuple[int, ...]
    """Special ids that no text may hold (all but the unknown token's)."""
    unknown: int | None
    byte_tokens: tuple[int, ...]
    """Ids that are single bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeTask:
    """Everything that encoding one group of slices reads."""

    subset: Subset
    split: Split
    number: int
    """Which group of the split it is."""
    slices: tuple[TextSlice, ...]
    folder: Path
    """Where shards are written; they move into the corpus when all are complete."""
    tokenizer: TokenizerInfo
    shard_tokens: int
    dropped_file: Path | None
    """Where dropped lines are written."""

    @property
    def bytes(self) -> int:
        """The size of the text."""
        return sum(part.bytes for part in self.slices)

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{self.subset.folder}/{self.split}, part {self.number + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeResult:
    """The shards of one group, and the records that are not in them."""

    shards: tuple[ShardEntry, ...]
    dropped: dict[str, int]
    statistics: tuple[TokenizerStats, ...]
    """Of each column."""
    seconds: float


def is_complete(task: EncodeTask, result: EncodeResult) -> bool:
    """Whether the shards of a finished group are still there."""
    paths = [(task.folder / shard.file, shard.bytes) for shard in result.shards]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def encode_group(task: EncodeTask) -> EncodeResult:
    """Encodes the text of one group."""
    started = time.monotonic()
    subset, tokenizer = task.subset, task.tokenizer
    encoder = open_encoder(tokenizer.encoder, tokenizer.folder, tokenizer.sha256)
    writer = ShardWriter(
        task.folder,
        f"{subset.folder}/{task.split}-{task.number:05d}",
        {"source": subset.source, "kind": subset.kind, "languages": " ".join(subset.languages)},
        shard_tokens=task.shard_tokens,
    )
    reasons: Counter[str] = Counter()
    statistics = [TokenizerStats()] * len(subset.columns)
    with DroppedLines(task.dropped_file, subset) as dropped:
        for part, records in _batches(task.slices):
            kept = [record for record in records if record.reason is None]
            encoded = []
            for column in range(len(subset.columns)):
                texts = [record.texts[column] for record in kept]
                ids, lengths = encoder.encode(texts)
                encoded.append((ids, lengths))
                statistics[column] += count_statistics(
                    texts, ids, tokenizer.unknown, tokenizer.byte_tokens
                )
            rows, faults = _token_rows(kept, subset, encoded, tokenizer.special)
            writer.append(rows)
            faulty = [
                record._replace(reason=fault)
                for record, fault in zip(kept, faults, strict=True)
                if fault is not None
            ]
            for record in [*records, *faulty]:
                if record.reason is not None:
                    reasons[record.reason] += 1
                    dropped.write(part.file, record.line, record.reason, record.texts)
    return EncodeResult(
        shards=tuple(writer.close()),
        dropped=dict(sorted(reasons.items())),
        statistics=tuple(statistics),
        seconds=time.monotonic() - started,
    )


def _batches(slices: tuple[TextSlice, ...]) -> Iterator[tuple[TextSlice, list[CleanRecord]]]:
    for part in slices:
        records = part.records()
        while batch := list(islice(records, _BATCH_ROWS)):
            yield part, batch


def _token_rows(
    records: list[CleanRecord],
    subset: Subset,
    encoded: list[tuple[IntArray, IntArray]],
    special_ids: tuple[int, ...],
) -> tuple[TokenRows, list[str | None]]:
    """The records that can be encoded, and for each record why it cannot.

    `no tokens`: the tokenizer gives no token for a text. `special`: a part of the text was encoded
    as a special token, which training would take for a mask or a separator.
    """
    special = np.zeros(len(records), dtype=np.bool_)
    empty = np.zeros(len(records), dtype=np.bool_)
    for ids, lengths in encoded:
        owners = np.repeat(np.arange(len(records)), lengths)
        special[owners[np.isin(ids, special_ids)]] = True
        empty |= lengths == 0
    special &= ~empty
    keep = ~(special | empty)
    kept = [(ids[np.repeat(keep, lengths)], lengths[keep]) for ids, lengths in encoded]
    document = np.array([record.document for record in records], dtype=np.int32)[keep]
    rows = TokenRows(
        tokens={name: ids for name, (ids, _) in zip(subset.columns, kept, strict=True)},
        lengths={name: lengths for name, (_, lengths) in zip(subset.columns, kept, strict=True)},
        document=document if subset.kind == "text" else None,
    )
    faults: list[str | None] = [None] * len(records)
    for reason, found in (("special", special), ("no tokens", empty)):
        for row in np.flatnonzero(found).tolist():
            faults[row] = reason
    return rows, faults


def count_statistics(
    texts: Sequence[str], ids: IntArray, unknown: int | None, byte_tokens: Iterable[int]
) -> TokenizerStats:
    """The counts of some texts and their ids."""
    counts = np.bincount(ids) if len(ids) else np.zeros(1, np.int64)
    return TokenizerStats(
        words=count_words(texts),
        tokens=len(ids),
        unknown=0 if unknown is None or unknown >= len(counts) else int(counts[unknown]),
        bytes=sum(int(counts[number]) for number in byte_tokens if number < len(counts)),
    )


def count_words(texts: Sequence[str]) -> int:
    """The number of words of normalized texts."""
    characters = np.frombuffer("\n".join(texts).encode("utf-32-le"), np.uint32)
    if not len(characters):
        return 0
    space: BoolArray = (characters == ord(" ")) | (characters == ord("\n"))
    alone = np.zeros(len(characters), np.bool_)
    for first, last in NO_SPACE_RANGES:
        alone |= (characters >= first) & (characters <= last)
    starts = ~space
    # a word continues if the character before is neither a space nor a word of its own
    starts[1:] &= space[:-1] | alone[:-1] | alone[1:]
    return int(starts.sum())
