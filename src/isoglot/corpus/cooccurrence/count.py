"""Counts the token pairs of a prepared corpus into a `PairTable`, in bounded memory, resumable.

    corpus -> text chunks -> sorted runs -> rows merged, × c_lang -> table (`runs`)

Runs and parts stay until the table is finished, so an interrupted count is resumed (with the same
memory and workers, which decide the chunks). Memory, workers and the kind of worker change no bit
of the table. The compiled loops release the GIL, so threads are the default.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from isoglot.atomic import write_errors
from isoglot.corpus.cooccurrence.pair_table import (
    FOLDER,
    KEYS,
    LOGS,
    MANIFEST,
    PairManifest,
    PairTable,
)
from isoglot.corpus.cooccurrence.runs import (
    BLOCK_PAIRS,
    CountTask,
    MergeTask,
    columns_by_language,
    concatenate_parts,
    count_chunk,
    merge_range,
    ordinary_tokens,
    row_ranges,
    split_into_chunks,
)
from isoglot.corpus.engine.runner import LOCAL, no_progress, run_tasks
from isoglot.corpus.storage.corpus import Corpus
from isoglot.corpus.storage.manifest import save_manifest
from isoglot.corpus.storage.shards import FileEntry
from isoglot.errors import CorpusError, nearest
from isoglot.locks import lock_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from isoglot.corpus.cooccurrence.pair_table import PairConfig
    from isoglot.corpus.engine.runner import Pool, Progress

_RUNS = "runs-"
_VERSION = 3
"""Of what is counted; a table of another version is counted again."""
_PAIRS_PER_READ = 20_000
"""Pairs of one run that are worth a read."""


def count_pairs(
    corpus: Corpus,
    config: PairConfig,
    folder: Path | None = None,
    *,
    workers: int = 1,
    pool: Pool = "threads",
    cluster: str = LOCAL,
    progress: Progress | None = None,
) -> PairTable:
    """The pair counts of a corpus's training text; counted unless the table exists.

    The table's folder is by default one inside the corpus. Workers, threads or processes, share the
    memory. On a Ray cluster (`auto` or its address), whose machines must see the folders of corpus
    and counts, `workers` is the number of tasks that run on one machine at a time. Where another
    command is counting the same, its table is waited for.
    """
    if cluster != LOCAL and not corpus.folder.is_absolute():
        # workers of a cluster run in folders of their own
        corpus = Corpus.open(corpus.folder.resolve(), verify="never")
    counted = _identity(corpus, config)
    folder = (folder or corpus.folder / FOLDER / _digest(counted)).absolute()
    if not (folder / MANIFEST).exists():
        with lock_file(folder, wait=True):
            # another command may have counted meanwhile
            if not (folder / MANIFEST).exists():
                run = partial(run_tasks, workers=workers, pool=pool, cluster=cluster)
                report = progress or no_progress
                _count(corpus, config, folder, counted, workers=workers, run=run, report=report)
    if PairManifest.read(folder).counted != counted:
        raise CorpusError(
            f"{folder}: holds the pairs of another corpus or other settings. Choose another "
            "folder, or remove it."
        )
    return PairTable.open(folder)


def _count(
    corpus: Corpus,
    config: PairConfig,
    folder: Path,
    counted: dict[str, Any],
    *,
    workers: int,
    run: Callable[..., list[int]],
    report: Progress,
) -> None:
    """Counts and writes the table, pairs.json last."""
    columns = columns_by_language(corpus, config)
    ordinary = ~corpus.vocabulary.is_special
    tokens = ordinary_tokens(columns, ordinary, run)
    constants = _language_constants(tokens, config)
    languages = _languages(columns, config)
    num_tokens = sum(tokens[language] for language in languages)
    chunk_tokens, max_pairs = _sizes(config, num_tokens, workers)
    runs = folder / f"{_RUNS}{_digest([counted, chunk_tokens])}"
    _clear(folder, runs)
    chunks = [
        chunk
        for language in languages
        for chunk in split_into_chunks(language, columns[language], chunk_tokens)
    ]
    counting = [
        CountTask(
            chunk=chunk,
            config=config,
            ordinary=ordinary,
            folder=runs / f"{index:06d}",
            block_pairs=min(BLOCK_PAIRS, max_pairs),
        )
        for index, chunk in enumerate(chunks)
    ]
    run(
        count_chunk,
        counting,
        name=lambda task: f"pairs of {task.chunk.ranges[0].shard.path}",
        sizes=[chunk.num_tokens for chunk in chunks],
        progress=lambda done, total: report("count pairs", done, total),
    )
    range_pairs = min(max(BLOCK_PAIRS, _PAIRS_PER_READ * len(chunks)), max_pairs)
    merging = _merge_tasks(counting, constants, corpus.vocabulary.size, range_pairs)
    pairs = run(
        merge_range,
        merging,
        name=lambda task: str(task.part),
        progress=lambda done, total: report("merge pairs", done, total),
    )
    concatenate_parts([task.part for task in merging], folder, config.dtype, workers=workers)
    manifest = PairManifest(
        pairs=sum(pairs),
        vocabulary_size=corpus.vocabulary.size,
        language_constants={language: constants[language] for language in languages},
        tokens={language: tokens[language] for language in languages},
        counted=counted,
        files=tuple(FileEntry.of(folder / n, n) for n in (KEYS, f"{LOGS}.{config.dtype}")),
    )
    save_manifest(folder / MANIFEST, manifest)
    shutil.rmtree(runs)


def _merge_tasks(
    counted: Sequence[CountTask], constants: dict[str, float], vocabulary_size: int, max_pairs: int
) -> list[MergeTask]:
    """The row ranges to merge, once all runs are written."""
    runs = tuple((task.folder, task.chunk.language) for task in counted)
    config, folder = counted[0].config, counted[0].folder.parent
    languages = dict.fromkeys(language for _, language in runs)
    factors = {language: constants[language] / config.denominator for language in languages}
    return [
        MergeTask(
            runs=runs,
            factors=factors,
            first=first,
            last=last,
            part=folder / f"part-{first}",
            config=config,
            vocabulary_size=vocabulary_size,
        )
        for first, last in row_ranges([run for run, _ in runs], vocabulary_size, max_pairs)
    ]


def _sizes(config: PairConfig, num_tokens: int, workers: int) -> tuple[int, int]:
    """Tokens of a chunk and pairs of a block, so that all workers together fit the memory.

    Half of a worker's share holds packed pairs of four bytes, a quarter their sums.
    """
    budget = config.memory_mib * 2**20 / workers
    chunk = min(budget / 2 / (4 * config.window), -(-num_tokens // workers))
    return max(int(chunk), 1), max(int(budget / 4 / 12), 1)


def _identity(corpus: Corpus, config: PairConfig) -> dict[str, Any]:
    """Everything that decides the counts."""
    settings = {name: value for name, value in asdict(config).items() if name != "memory_mib"}
    # with lists for tuples, as read back from pairs.json
    settings = json.loads(json.dumps(settings))
    return {"version": _VERSION, "corpus": corpus.fingerprint, "settings": settings}


def _digest(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _languages(found: dict[str, Any], config: PairConfig) -> list[str]:
    """The languages to count, in the order of the corpus."""
    for language in config.languages:
        _require_text("languages", language, found)
    return [language for language in found if language in (config.languages or found)]


def _language_constants(tokens: dict[str, int], config: PairConfig) -> dict[str, float]:
    """Language -> c_lang: tokens of the pivot ÷ its own tokens, or 1 where switched off."""
    known = {language: number for language, number in tokens.items() if number}
    if not config.language_constants or not known:
        return dict.fromkeys(tokens, 1.0)
    pivot = config.pivot_language
    if pivot is None:
        pivot = "en" if "en" in known else max(known, key=lambda language: known[language])
    _require_text("pivot_language", pivot, known)
    # a language of special tokens alone has no pairs to multiply
    return {code: known[pivot] / number if number else 1.0 for code, number in tokens.items()}


def _clear(folder: Path, runs: Path) -> None:
    """Removes the runs of an interrupted count with other chunks."""
    with write_errors(folder):
        for other in folder.glob(f"{_RUNS}*"):
            if other != runs:
                shutil.rmtree(other)
        runs.mkdir(parents=True, exist_ok=True)


def _require_text(setting: str, language: str, found: dict[str, Any]) -> None:
    if language not in found:
        hint = nearest(language, found)
        raise CorpusError(f"pairs.{setting}: there is no text in {language!r} to count; {hint}")
