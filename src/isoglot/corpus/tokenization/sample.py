"""The words that a tokenizer is trained on, counted in sentences drawn from the cleaned text.

Languages are sampled with p ∝ N^alpha, N being a language's number of training sentences over all
sources (XLM: Lample & Conneau, 2019, section 3.1). Where its share is more than it has, all of its
sentences are repeated equally often.

The sentences are drawn by number, before any text is read. A task then reads the lines of one part
of the text that were drawn from it, and no others, and counts their words; memory is that of the
part's share of the sample.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.atomic import replace_file, save_array, write_bytes, write_errors
from isoglot.corpus.cleaning.clean_text import CleanedGroup, Offset, TextPiece
from isoglot.corpus.tokenization.word_counts import counted_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isoglot.corpus.tokenization.build import TokenizerConfig
    from isoglot.types import LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTask:
    """The sentences to draw from one column of one part of the text."""

    language: str
    text: TextPiece
    offsets: tuple[Offset, ...]
    """Places in it at which lines start."""
    column: int | None
    """Which of the two texts of a pair; None for text."""
    repeats: int
    """How often every sentence is drawn."""
    drawn: Path
    """The numbers of the language's sentences that are drawn once more, sorted."""
    digest: str
    """A hash of these numbers."""
    first: int
    """The number of the first sentence of the part."""
    sentences: int
    """Sentences of the part that are no duplicates."""
    output: Path


def is_complete(task: SampleTask, digest: str) -> bool:
    """Whether the words of a finished task are still there."""
    return task.output.is_file() and bool(digest)


def count_sentences(groups: Sequence[CleanedGroup]) -> dict[str, int]:
    """Language -> training sentences without duplicates."""
    sentences: Counter[str] = Counter()
    for group in groups:
        for language in group.task.group.subset.languages:
            sentences[language] += _kept(group)
    return dict(sentences)


def _kept(group: CleanedGroup) -> int:
    duplicates = group.duplicates
    repeated = sum(duplicates.rows["train"].values()) if duplicates is not None else 0
    return group.result.rows["train"] - repeated


def sample_tasks(
    texts: Sequence[tuple[CleanedGroup, TextPiece]],
    sentences: Mapping[str, int],
    config: TokenizerConfig,
    folder: Path,
) -> list[SampleTask]:
    """The tasks, in the order of their sentences in the sample; numbers are drawn and written."""
    tasks: list[SampleTask] = []
    columns: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, (group, _) in enumerate(texts):
        for column, language in enumerate(group.task.group.subset.languages):
            columns[language].append((number, column))
    sizes = sample_sizes(sentences, alpha=config.alpha, limit=config.max_sentences)
    for language, wanted in sorted(sizes.items()):
        available = sentences[language]
        repeats, rest = divmod(wanted, available)
        seed = [config.seed, *language.encode()]
        drawn = np.sort(np.random.default_rng(seed).choice(available, rest, replace=False))
        file = folder / f"{language}.npy"
        with write_errors(file), replace_file(file) as partial:
            save_array(partial, drawn)
        first = 0
        for number, column in columns[language]:
            group, text = texts[number]
            kept = _kept(group)
            lower, upper = np.searchsorted(drawn, [first, first + kept])
            if kept and (repeats or upper > lower):
                task = SampleTask(
                    language=language,
                    text=text,
                    offsets=group.result.offsets["train"],
                    column=column if group.task.group.subset.kind == "pairs" else None,
                    repeats=repeats,
                    drawn=file,
                    digest=sha256(drawn[lower:upper].tobytes()).hexdigest(),
                    first=first,
                    sentences=kept,
                    output=folder / f"{language}-{number:06d}-{column}.words",
                )
                tasks.append(task)
            first += kept
    return tasks


def count_drawn_words(task: SampleTask) -> str:
    """Writes the counted words of one task's sentences; returns the SHA-256 of the file."""
    drawn = np.load(task.drawn, mmap_mode="r")
    lower, upper = np.searchsorted(drawn, [task.first, task.first + task.sentences])
    chosen = drawn[lower:upper] - task.first
    numbers = np.repeat(np.arange(task.sentences), task.repeats) if task.repeats else chosen[:0]
    rows, times = np.unique(np.concatenate([numbers, chosen]), return_counts=True)
    lines = _lines(task, _rows(task.text, rows))
    data = counted_lines(zip(lines, times.tolist(), strict=True))
    write_bytes(task.output, data)
    return sha256(data).hexdigest()


def _rows(text: TextPiece, numbers: LongArray) -> LongArray:
    """The rows of the sentences of these numbers, which do not count duplicates."""
    if text.duplicates is None:
        return numbers
    found = text.duplicates.read("train").values()
    dropped = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    # before the k-th duplicate there are as many sentences as rows, less k
    return numbers + np.searchsorted(dropped - np.arange(len(dropped)), numbers, side="right")


def _lines(task: SampleTask, rows: LongArray) -> Iterator[bytes]:
    """The text of these (sorted) rows in one column."""
    with task.text.text.open("rb") as file:
        for start, end in pairwise(task.offsets):
            lower, upper = np.searchsorted(rows, [start.row, end.row])
            if lower == upper:
                continue
            file.seek(start.byte)
            found = file.read(end.byte - start.byte).split(b"\n")
            for row in rows[lower:upper].tolist():
                line = found[row - start.row]
                yield line if task.column is None else line.split(b"\t")[task.column]


def sample_sizes(sentences: Mapping[str, int], *, alpha: float, limit: int) -> dict[str, int]:
    """Language -> number of sentences to draw, at most `limit` in all (but at least one each)."""
    sizes = {language: number for language, number in sentences.items() if number}
    weights = {language: number**alpha for language, number in sizes.items()}
    budget = min(limit, sum(sizes.values()))
    total = sum(weights.values())
    return {
        language: max(1, round(budget * weight / total)) for language, weight in weights.items()
    }
