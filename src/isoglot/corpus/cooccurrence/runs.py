"""External sorting of token pairs: chunks of text are counted into sorted runs, runs are merged.

A chunk is consecutive sentences of one language, named as row ranges of the mapped shards. A run is
a folder of three raw files, written atomically: `starts` (the offset of each vocabulary row),
`others` (the larger ids, ascending in a row) and `weights` (integer sums, 32 or 64 bits). A range
of vocabulary rows is merged by any process into a part; the parts, in order, are the table.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isoglot.atomic import replace_folder, write_array, write_errors
from isoglot.corpus.cooccurrence import kernels
from isoglot.corpus.cooccurrence.pair_table import KEYS, LOGS, PairConfig, map_array
from isoglot.corpus.storage.shards import Shard, columns_of
from isoglot.errors import CorpusError, nearest
from isoglot.types import BoolArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isoglot.corpus.storage.corpus import Corpus

BLOCK_PAIRS = 400_000
"""Pairs summed or merged before they are written: arrays of this size are reused from the
allocator's memory, which halves the system time."""
_NARROW = 2**32
"""Sums below this are stored in 32 bits."""
_COPY_BYTES = 1 << 22
_COLUMNS_PER_TASK = 16
"""Shards of 4 million tokens whose tokens one task counts."""


class RowRange(NamedTuple):
    """Rows [first, last) of a column of a shard."""

    shard: Shard
    column: str
    first: int
    last: int


class TextChunk(NamedTuple):
    """The text of one counting task."""

    language: str
    ranges: tuple[RowRange, ...]
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


class TokensTask(NamedTuple):
    """Columns of shards whose tokens are counted by any process."""

    columns: tuple[tuple[Shard, str], ...]
    ordinary: BoolArray


def count_tokens(task: TokensTask) -> int:
    """The tokens of some columns that are not special."""
    return sum(
        int(kernels.count_ordinary(shard.values(column), task.ordinary))
        for shard, column in task.columns
    )


def ordinary_tokens(
    columns: dict[str, list[tuple[Shard, str]]],
    ordinary: BoolArray,
    run: Callable[..., list[int]],
) -> dict[str, int]:
    """Language -> its tokens that are not special: those whose pairs are counted."""
    tasks, languages = [], []
    for language, found in columns.items():
        for first in range(0, len(found), _COLUMNS_PER_TASK):
            part = tuple(found[first : first + _COLUMNS_PER_TASK])
            tasks.append(TokensTask(part, ordinary))
            languages.append(language)
    total = dict.fromkeys(columns, 0)
    counts = run(count_tokens, tasks, name=lambda task: f"tokens of {task.columns[0][0].path}")
    for language, tokens in zip(languages, counts, strict=True):
        total[language] += tokens
    return total


def split_into_chunks(
    language: str, columns: list[tuple[Shard, str]], max_tokens: int
) -> Iterator[TextChunk]:
    """The chunks of one language; a sentence over `max_tokens` is a chunk of its own."""
    ranges: list[RowRange] = []
    room = max_tokens
    for shard, column in columns:
        offsets = shard.offsets(column)
        first = 0
        while first < shard.num_rows:
            last = int(np.searchsorted(offsets, int(offsets[first]) + room, "right")) - 1
            if last <= first and ranges:
                yield TextChunk(language, tuple(ranges), max_tokens - room)
                ranges, room = [], max_tokens
                continue
            last = min(max(last, first + 1), shard.num_rows)
            ranges.append(RowRange(shard, column, first, last))
            room -= int(offsets[last] - offsets[first])
            first = last
    if ranges:
        yield TextChunk(language, tuple(ranges), max_tokens - room)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTask:
    """A chunk to be counted by any process."""

    chunk: TextChunk
    config: PairConfig
    ordinary: BoolArray
    """For each id: is it counted?"""
    folder: Path
    """The run."""
    block_pairs: int = BLOCK_PAIRS
    """Maximum of pairs summed before they are written."""


def count_chunk(task: CountTask) -> int:
    """Counts a chunk into a run, unless the run exists; gives the chunk's tokens."""
    if task.folder.exists():
        return task.chunk.num_tokens
    starts, packed = _sorted_pairs(task.chunk, task.config, task.ordinary)
    size, numerators = len(task.ordinary), task.config.numerators()
    # a token beside itself counts twice
    max_sum = 2 * int(numerators.max()) * len(packed)
    dtype = np.dtype(np.uint32 if max_sum < _NARROW else np.int64)
    lengths = [np.zeros(1, np.int64)]
    with write_errors(task.folder), replace_folder(task.folder) as partial:
        with (partial / "others").open("wb") as other, (partial / "weights").open("wb") as weight:
            for first, last in row_blocks(starts, task.block_pairs):
                room = min(int(starts[last] - starts[first]), task.block_pairs + size)
                others, weights = np.empty(room, np.int32), np.empty(room, dtype)
                ends = np.empty(last - first, np.int64)
                number = kernels.sum_rows(
                    packed, starts, first, last, numerators, size, others, weights, ends
                )
                write_array(other, others[:number])
                write_array(weight, weights[:number])
                lengths.append(np.diff(ends, prepend=0))
        with (partial / "starts").open("wb") as file:
            write_array(file, np.cumsum(np.concatenate(lengths)))
    return task.chunk.num_tokens


def _sorted_pairs(
    chunk: TextChunk, config: PairConfig, ordinary: BoolArray
) -> tuple[LongArray, kernels.PackedPairs]:
    """The offset of each smaller id's pairs, and all pairs in that order."""
    starts = np.zeros(len(ordinary) + 1, np.int64)
    texts = [
        (r.shard.values(r.column), r.shard.offsets(r.column), r.first, r.last) for r in chunk.ranges
    ]
    nothing = np.empty(0, np.uint32)
    for text in texts:
        kernels.place_pairs(*text, ordinary, config.window, starts[1:], nothing)
    np.cumsum(starts, out=starts)
    packed = np.empty(starts[-1], np.uint32)
    places = starts[:-1].copy()
    for text in texts:
        kernels.place_pairs(*text, ordinary, config.window, places, packed)
    return starts, packed


def row_blocks(starts: LongArray, max_pairs: int) -> list[tuple[int, int]]:
    """Ranges of rows with at most `max_pairs` pairs; a larger row is a range of its own."""
    found, first, rows = [], 0, len(starts) - 1
    while first < rows:
        last = int(np.searchsorted(starts, starts[first] + max_pairs, "right")) - 1
        last = min(max(last, first + 1), rows)
        found.append((first, last))
        first = last
    return found


@dataclass(frozen=True, slots=True)
class SortedRun:
    """The counts of a chunk: `starts` is mapped, the rest is read by row range."""

    folder: Path
    starts: LongArray
    wide: bool
    """Do weights have 64 bits?"""

    @classmethod
    def open(cls, folder: Path) -> SortedRun:
        """Opens the files of a run."""
        rows = (folder / "starts").stat().st_size // 8
        starts = map_array(folder / "starts", np.dtype(np.int64), rows)
        return cls(folder, starts, (folder / "weights").stat().st_size > 4 * int(starts[-1]))

    def read(self, first: int, last: int, others: Any, weights: Any) -> None:
        """Fills two arrays with the rows [first, last)."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        # read and not mapped: the mapped pages would add up to the whole file in memory
        others[:] = np.fromfile(self.folder / "others", np.int32, end - begin, offset=4 * begin)
        dtype = np.dtype(np.int64 if self.wide else np.uint32)
        offset = dtype.itemsize * begin
        weights[:] = np.fromfile(self.folder / "weights", dtype, end - begin, offset=offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTask:
    """A range of rows to be merged by any process."""

    runs: tuple[tuple[Path, str], ...]
    """Folders of runs and their languages; runs of one language are neighbors."""
    factors: dict[str, float]
    """Language -> the factor of its integer sums."""
    first: int
    last: int
    """The rows [first, last)."""
    part: Path
    """The folder of this range of the table."""
    config: PairConfig
    vocabulary_size: int


def row_ranges(runs: Sequence[Path], vocabulary_size: int, max_pairs: int) -> list[tuple[int, int]]:
    """Ranges of rows with at most `max_pairs` in all runs together, unless one row has more."""
    # the offsets of a row in each run take memory as its pairs do
    total = len(runs) * np.arange(vocabulary_size + 1)
    for run in runs:
        total += SortedRun.open(run).starts
    return row_blocks(total, max_pairs)


def merge_range(task: MergeTask) -> int:
    """Merges a range of rows into a part, unless the part exists; gives its number of pairs."""
    if not task.part.exists():
        keys, logs = _merge(task)
        with (
            write_errors(task.part),
            replace_folder(task.part) as partial,
            (partial / KEYS).open("wb") as key_file,
            (partial / LOGS).open("wb") as log_file,
        ):
            write_array(key_file, keys)
            write_array(log_file, logs.astype(task.config.dtype, copy=False))
    return (task.part / KEYS).stat().st_size // 8


def _merge(task: MergeTask) -> tuple[LongArray, kernels.Logs]:
    """The keys of a range of rows, and the logs of their counts."""
    first, last = task.first, task.last
    runs = [SortedRun.open(run) for run, _ in task.runs]
    numbers = {language: number for number, language in enumerate(task.factors)}
    languages = np.array([numbers[language] for _, language in task.runs], np.int64)
    bounds = np.stack([run.starts[first : last + 1] - run.starts[first] for run in runs])
    bounds += np.cumsum(np.append(0, bounds[:-1, -1]))[:, None]
    dtype = np.int64 if any(run.wide for run in runs) else np.uint32
    others, weights = np.empty(bounds[-1, -1], np.int32), np.empty(bounds[-1, -1], dtype)
    for run, (begin, end) in zip(runs, bounds[:, [0, -1]].tolist(), strict=True):
        run.read(first, last, others[begin:end], weights[begin:end])
    keys, logs = np.empty(len(others), np.int64), np.empty(len(others), np.float32)
    number = kernels.merge_rows(
        others,
        weights,
        bounds,
        first,
        languages,
        np.array(list(task.factors.values()), np.float64),
        task.config.min_count,
        task.vocabulary_size,
        keys,
        logs,
    )
    return keys[:number], logs[:number]


def concatenate_parts(parts: Sequence[Path], folder: Path, dtype: str, *, workers: int) -> None:
    """Copies all parts, in order, into the table's files; removes each part after its copy."""
    files = {KEYS: folder / KEYS, LOGS: folder / f"{LOGS}.{dtype}"}
    width = {KEYS: 8, LOGS: np.dtype(dtype).itemsize}
    numbers = [(part / KEYS).stat().st_size // 8 for part in parts]

    def copy(part: Path, place: int) -> None:
        for name, file in files.items():
            with (part / name).open("rb") as source, file.open("r+b") as table:
                table.seek(place * width[name])
                shutil.copyfileobj(source, table, _COPY_BYTES)
        # an interruption here merges the part again; the page cache is free for the next one
        shutil.rmtree(part)

    with write_errors(folder), ThreadPoolExecutor(workers) as pool:
        for name, file in files.items():
            file.touch()
            os.truncate(file, sum(numbers) * width[name])
        list(pool.map(copy, parts, accumulate(numbers[:-1], initial=0)))
