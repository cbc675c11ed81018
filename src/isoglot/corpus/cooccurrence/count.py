"""The pairs of a prepared corpus, counted once: chunks to runs, runs joined into one sorted table.

    corpus --cut--> chunks --count, sort--> runs --join by rows, × c_lang--> parts --> keys, logs

Memory is bounded by a setting, not by the corpus. Runs and parts are kept until the table is
finished, so counting that was stopped goes on where it was (with the same memory and workers, which
decide the chunks). None of these changes a bit of the table.

Chunks and ranges of rows share nothing but a folder, so they are counted and joined wherever `run`
puts them: by default in threads, side by side in compiled loops.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from isoglot.corpus.cooccurrence.chunks import columns_by_language, cut
from isoglot.corpus.cooccurrence.joining import JoinTask, join_range, put_together, ranges
from isoglot.corpus.cooccurrence.runs import BLOCK, CountTask, count_chunk
from isoglot.corpus.cooccurrence.table import ABOUT, PairTable
from isoglot.corpus.disk import write_atomically, writing
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.cooccurrence.settings import PairConfig
    from isoglot.corpus.corpus import Corpus
    from isoglot.corpus.table import Shard
    from isoglot.corpus.workshop import Progress

FOLDER = "cooccurrence"
"""Where a corpus keeps the counts of its pairs: a folder for each setting."""
_RUNS = "runs-"
_FROM_EACH = 20_000
"""Pairs worth a read of a run."""

Run = Callable[[Callable[[Any], int], Sequence[Any], int], Iterator[int]]
"""Calls a function with every task, with so many workers, and gives the results in order."""


def in_threads(function: Callable[[Any], int], tasks: Sequence[Any], workers: int) -> Iterator[int]:
    """Tasks in threads of this process."""
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(function, tasks)


def count_pairs(
    corpus: Corpus,
    config: PairConfig,
    folder: Path | None = None,
    *,
    workers: int = 1,
    run: Run = in_threads,
    progress: Progress | None = None,
) -> PairTable:
    """The pair counts of a corpus's training text, counted unless they are there already.

    Args:
        corpus: a prepared corpus.
        config: what is counted.
        folder: where the counts are kept; none: in the corpus's own folder.
        workers: chunks that are counted side by side; each has its share of the memory.
        run: what calls the workers, threads or what `isoglot.corpus.engine` has; all of them must
            see the folders of corpus and counts.
        progress: told how far it is.
    """
    about = _about(corpus, config)
    folder = folder or corpus.folder / FOLDER / _digest(about)
    if (folder / ABOUT).exists():
        if json.loads((folder / ABOUT).read_text(encoding="utf-8"))["counted"] != about:
            raise CorpusError(
                f"{folder}: holds the pairs of another corpus or other settings. Choose another "
                "folder, or remove it."
            )
        return PairTable.open(folder)
    _make(corpus, config, folder, about, workers=workers, run=run, progress=progress)
    return PairTable.open(folder)


def _make(
    corpus: Corpus,
    config: PairConfig,
    folder: Path,
    about: dict[str, Any],
    *,
    workers: int,
    run: Run,
    progress: Progress | None,
) -> None:
    """Counts and writes the table; pairs.json, which makes it one, comes last."""
    columns = columns_by_language(corpus, config)
    tokens = {language: _num_tokens(found) for language, found in columns.items()}
    constants = _constants(tokens, config)
    asked = _asked(columns, config)
    number = sum(tokens[language] for language in asked)
    most, room = _sizes(config, number, workers)
    runs = folder / f"{_RUNS}{_digest([about, most])}"
    _clear(folder, runs)
    chunks = [chunk for language in asked for chunk in cut(language, columns[language], most)]
    ordinary = ~corpus.vocabulary.is_special
    counting = [
        CountTask(
            chunk=chunk,
            config=config,
            ordinary=ordinary,
            folder=runs / f"{index:06d}",
            block=min(BLOCK, room),
        )
        for index, chunk in enumerate(chunks)
    ]
    _follow("count pairs", run(count_chunk, counting, workers), number, progress)
    block = min(max(BLOCK, _FROM_EACH * len(chunks)), room)
    joining = _joining(counting, constants, corpus.vocabulary.size, block)
    pairs = _follow("join pairs", run(join_range, joining, workers), None, progress)
    put_together([task.part for task in joining], folder, config.kept, workers=workers)
    told = {
        "pairs": pairs,
        "size": corpus.vocabulary.size,
        "constants": {language: constants[language] for language in asked},
        "tokens": {language: tokens[language] for language in asked},
        "counted": about,
    }
    write_atomically(folder / ABOUT, json.dumps(told, indent=2).encode())
    shutil.rmtree(runs)


def _joining(
    counted: Sequence[CountTask], constants: dict[str, float], size: int, block: int
) -> list[JoinTask]:
    """The ranges of rows to join, once all runs are there."""
    runs = tuple((task.folder, task.chunk.language) for task in counted)
    config, folder = counted[0].config, counted[0].folder.parent
    languages = dict.fromkeys(language for _, language in runs)
    factors = {language: constants[language] / config.denominator for language in languages}
    return [
        JoinTask(
            runs=runs,
            factors=factors,
            first=first,
            last=last,
            part=folder / f"part-{first}",
            config=config,
            size=size,
        )
        for first, last in ranges([folder for folder, _ in runs], size, block)
    ]


def _follow(
    stage: str, results: Iterator[int], total: int | None, progress: Progress | None
) -> int:
    """The sum of the results, told as it grows."""
    done = 0
    if progress is not None:
        progress(stage, 0, total)
    for number in results:
        done += number
        if progress is not None:
            progress(stage, done, total)
    return done


def _sizes(config: PairConfig, tokens: int, workers: int) -> tuple[int, int]:
    """The most tokens of a chunk and the most pairs at a time, for work that fits the memory.

    Half of a worker's share holds pairs of four bytes, a quarter what they add up to.
    """
    budget = config.memory * 2**20 / workers
    chunk = min(budget / 2 / (4 * config.window), -(-tokens // workers))
    return max(int(chunk), 1), max(int(budget / 4 / 12), 1)


def _about(corpus: Corpus, config: PairConfig) -> dict[str, Any]:
    """All that decides the counts."""
    deciding = {name: value for name, value in asdict(config).items() if name != "memory"}
    about: dict[str, Any] = json.loads(
        json.dumps({"corpus": corpus.fingerprint, "settings": deciding})
    )
    return about


def _digest(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _num_tokens(columns: list[tuple[Shard, str]]) -> int:
    return sum(len(shard.values(column)) for shard, column in columns)


def _asked(found: dict[str, Any], config: PairConfig) -> list[str]:
    """The languages to count, in the order of the corpus."""
    for language in config.languages:
        if language not in found:
            raise CorpusError(
                f"pairs.languages: there is no text in {language!r} to count; "
                f"{nearest(language, found)}"
            )
    return [language for language in found if language in (config.languages or found)]


def _constants(tokens: dict[str, int], config: PairConfig) -> dict[str, float]:
    """Language -> tokens of the pivot ÷ its own tokens, or 1 where they are not wanted."""
    if not config.constants:
        return dict.fromkeys(tokens, 1.0)
    pivot = config.pivot
    if pivot is None:
        pivot = "en" if "en" in tokens else max(tokens, key=lambda language: tokens[language])
    if pivot not in tokens:
        raise CorpusError(
            f"pairs.pivot: there is no text in {pivot!r} to count; {nearest(pivot, tokens)}"
        )
    return {language: tokens[pivot] / number for language, number in tokens.items()}


def _clear(folder: Path, runs: Path) -> None:
    """Takes away the runs of counting that was begun with other chunks."""
    with writing(folder):
        for other in folder.glob(f"{_RUNS}*"):
            if other != runs:
                shutil.rmtree(other)
        runs.mkdir(parents=True, exist_ok=True)
