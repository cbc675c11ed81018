"""The pairs of a prepared corpus, counted once: chunks to runs, runs joined into one sorted table.

    corpus --cut--> chunks --count, sort--> runs on disk --join by rows, × c_lang--> keys, counts

Memory is bounded by a setting, not by the corpus. Runs are kept until the table is finished, so
counting that was stopped goes on where it was (with the same memory and workers, which decide the
chunks). None of these changes a bit of the table. Workers are threads: the compiled loops run side
by side.
"""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from isoglot.corpus.cooccurrence.chunks import Chunk, columns_by_language, cut
from isoglot.corpus.cooccurrence.joining import join_runs
from isoglot.corpus.cooccurrence.runs import BLOCK, count_chunk
from isoglot.corpus.cooccurrence.table import ABOUT, PairTable
from isoglot.corpus.disk import write_atomically, writing
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.cooccurrence.settings import PairConfig
    from isoglot.corpus.corpus import Corpus
    from isoglot.corpus.table import Shard

FOLDER = "cooccurrence"
"""Where a corpus keeps the counts of its pairs: a folder for each setting."""
_RUNS = "runs-"


def count_pairs(
    corpus: Corpus, config: PairConfig, folder: Path | None = None, *, workers: int = 1
) -> PairTable:
    """The pair counts of a corpus's training text, counted unless they are there already.

    They are kept in `folder`; without one, in the corpus's own folder.
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
    columns = columns_by_language(corpus, config)
    tokens = {language: _num_tokens(found) for language, found in columns.items()}
    constants = _constants(tokens, config)
    most, block = _sizes(config, sum(tokens.values()), workers)
    chunks = [chunk for language, found in columns.items() for chunk in cut(language, found, most)]
    runs = folder / f"{_RUNS}{_digest([about, most])}"
    _clear(folder, runs)
    _count(chunks, config, corpus, runs, block=block, workers=workers)
    number = join_runs(
        [(runs / f"{index:06d}", chunk.language) for index, chunk in enumerate(chunks)],
        {language: constant / config.denominator for language, constant in constants.items()},
        folder,
        size=corpus.vocabulary.size,
        floor=config.floor,
        block=block,
        workers=workers,
    )
    told = {
        "pairs": number,
        "size": corpus.vocabulary.size,
        "constants": constants,
        "tokens": tokens,
        "counted": about,
    }
    write_atomically(folder / ABOUT, json.dumps(told, indent=2).encode())
    shutil.rmtree(runs)
    return PairTable.open(folder)


def _sizes(config: PairConfig, tokens: int, workers: int) -> tuple[int, int]:
    """The most tokens of a chunk and the most pairs of a block, for work that fits the memory.

    Half of a worker's share holds pairs of four bytes, a quarter what they add up to.
    """
    budget = config.memory * 2**20 / workers
    chunk = min(budget / 2 / (4 * config.window), -(-tokens // workers))
    return max(int(chunk), 1), max(int(min(BLOCK, budget / 4 / 12)), 1)


def _count(
    chunks: list[Chunk],
    config: PairConfig,
    corpus: Corpus,
    runs: Path,
    *,
    block: int,
    workers: int,
) -> None:
    """A run for every chunk that has none yet."""
    ordinary = ~corpus.vocabulary.is_special

    def count(numbered: tuple[int, Chunk]) -> None:
        index, chunk = numbered
        count_chunk(chunk, config, ordinary, runs / f"{index:06d}", block=block)

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(count, enumerate(chunks)):
            pass


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
