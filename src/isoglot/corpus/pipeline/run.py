"""`prepare`: raw files in; shards of token ids, a tokenizer and a manifest out.

    plan -> exclude -> clean (per part of a file) -> duplicates -> tokenizer -> encode -> index

Every stage is a function of many independent tasks, which run in several processes or on a cluster;
the corpus is the same byte for byte wherever they run.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot import __version__
from isoglot.corpus.cleaning.dropped_lines import remove_others
from isoglot.corpus.engine.cluster import connected
from isoglot.corpus.engine.runner import LOCAL, StageRunner, Timings, no_progress
from isoglot.corpus.pipeline.index_stage import index_rows
from isoglot.corpus.pipeline.inputs import remember_hashes
from isoglot.corpus.pipeline.plan import WORK, clear_output, finish_output, make_plan
from isoglot.corpus.pipeline.stages import (
    clean_all,
    deduplicate,
    encode_all,
    index_excluded,
    tokenizer_stage,
)
from isoglot.corpus.storage.manifest import (
    FILE,
    Counts,
    Manifest,
    SourceEntry,
    SplitEntry,
    TokenizerStats,
    add_counts,
    fingerprint_of,
)
from isoglot.corpus.storage.shards import SPLITS
from isoglot.locks import lock_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.corpus.cleaning.clean_text import CleanedGroup
    from isoglot.corpus.cleaning.stage import CleanResult
    from isoglot.corpus.engine.runner import Progress
    from isoglot.corpus.pipeline.plan import PrepareConfig, PreparePlan
    from isoglot.corpus.storage.manifest import TokenizerEntry
    from isoglot.corpus.storage.shards import ShardEntry, Split
    from isoglot.corpus.tokenization.encode import EncodeResult, EncodeTask

    Shards = dict[tuple[str, Split], list[ShardEntry]]
    """(folder of a subset, split) -> its shards under their final names."""


def prepare(
    config: PrepareConfig,
    output: Path | str,
    *,
    base: Path | str = ".",
    workers: int = 1,
    cluster: str = LOCAL,
    progress: Progress | None = None,
    timings: Timings | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Prepares a corpus in the folder `output`, unless it is there already, complete and current.

    Paths in the settings are relative to `base`, or to the folder that `config.base` names. An
    interrupted run continues where it stopped; a corpus of other settings or inputs is refused,
    with the differences, unless `overwrite` is set.
    `cluster` is `local` (this machine), `auto` or the address of a Ray cluster whose machines see
    the same files. `timings` is filled in.
    """
    report = progress or no_progress
    output, base = Path(output), Path(base)
    if cluster != LOCAL:
        # workers of a cluster run in folders of their own
        output, base = output.resolve(), base.resolve()
    runner = StageRunner(
        work=output / WORK,
        workers=workers,
        cluster=cluster,
        progress=report,
        timings=timings or Timings(),
    )
    with nullcontext() if cluster == LOCAL else connected(cluster):
        plan = make_plan(config, base, runner)
        finished = plan.finished_manifest(overwrite=overwrite)
        if finished is not None:
            report("up to date", 1, 1)
        else:
            with lock_folder(output):
                clear_output(plan.output)
                remember_hashes(runner.work, plan.hashed)
                finished = _run_stages(plan, runner)
        if plan.knowledge is not None:
            from isoglot.corpus.knowledge.link.run import link

            settings, tables = plan.knowledge
            link(settings, tables, output, workers=workers, cluster=cluster, progress=report)
        return finished


def is_prepared(config: PrepareConfig, output: Path, *, base: Path) -> bool:
    """Whether `prepare` would find nothing to do."""
    if not (output / FILE).is_file():
        return False
    plan = make_plan(config, base, StageRunner(work=output / WORK))
    if plan.finished_manifest() is None:
        return False
    if plan.knowledge is None:
        return True
    from isoglot.corpus.knowledge.link.run import is_linked

    return is_linked(*plan.knowledge, output)


def _run_stages(plan: PreparePlan, runner: StageRunner) -> Manifest:
    cleaned = deduplicate(clean_all(plan, runner, index_excluded(plan, runner)), runner)
    built = tokenizer_stage(plan, runner, cleaned)
    encoded = encode_all(plan, runner, cleaned, built)
    for group in cleaned:
        runner.timings.folders[group.task.group.subset.folder] += group.result.seconds
    for task, found in encoded:
        runner.timings.folders[task.subset.folder] += found.seconds
    shards, moves = _number_shards(encoded, plan.output)
    for entry in built.entry.files:
        moves[built.info.folder / Path(entry.file).name] = plan.output / entry.file
    manifest = _make_manifest(plan, cleaned, encoded, shards, built.entry)
    manifest = replace(manifest, index=index_rows(plan.output, runner, manifest, moves))
    paths = [group.task.dropped_file for group in cleaned]
    paths += [task.dropped_file for task, _ in encoded]
    remove_others(path for path in paths if path is not None)
    finish_output(plan.output, manifest, moves)
    return manifest


def _number_shards(
    encoded: Sequence[tuple[EncodeTask, EncodeResult]], output: Path
) -> tuple[Shards, dict[Path, Path]]:
    """The shards of every subset, numbered, and for each its present and its final path."""
    shards: Shards = defaultdict(list)
    moves: dict[Path, Path] = {}
    for task, found in encoded:
        for shard in found.shards:
            entries = shards[task.subset.folder, task.split]
            name = f"{task.subset.folder}/{task.split}-{len(entries):05d}.arrow"
            moves[task.folder / shard.file] = output / name
            entries.append(replace(shard, file=name))
    return shards, moves


def _make_manifest(
    plan: PreparePlan,
    cleaned: Sequence[CleanedGroup],
    encoded: Sequence[tuple[EncodeTask, EncodeResult]],
    shards: Shards,
    tokenizer: TokenizerEntry,
) -> Manifest:
    """The manifest of a corpus whose shards are all written."""
    sources: dict[str, SourceEntry] = {}
    cleaned_in, encoded_in = defaultdict(list), defaultdict(list)
    for group in cleaned:
        cleaned_in[group.task.group.subset.folder].append(group.result)
    for task, encoding in encoded:
        encoded_in[task.subset.folder].append(encoding)
    for subset in plan.subsets:
        entry = sources.setdefault(
            subset.source, SourceEntry(kind=subset.kind, languages={}, counts={})
        )
        splits = entry.languages.setdefault(subset.language, {})
        for split in SPLITS:
            found = shards[subset.folder, split]
            tokens = {name: sum(shard.tokens[name] for shard in found) for name in subset.columns}
            rows = sum(shard.rows for shard in found)
            splits[split] = SplitEntry(shards=tuple(found), rows=rows, tokens=tokens)
        entry.counts[subset.language] = _counts(
            cleaned_in[subset.folder], encoded_in[subset.folder], splits
        )
    every = [shard for of_subset in shards.values() for shard in of_subset]
    languages = {language for subset in plan.subsets for language in subset.languages}
    return Manifest(
        isoglot=__version__,
        fingerprint=fingerprint_of(every, tokenizer.fingerprint),
        languages=tuple(sorted(languages)),
        tokenizer=replace(tokenizer, statistics=_statistics(encoded)),
        sources=sources,
        settings=plan.settings,
        inputs=tuple(plan.inputs.values()),
    )


def _counts(
    cleaned: Sequence[CleanResult], encoded: Sequence[EncodeResult], splits: dict[Split, SplitEntry]
) -> Counts:
    counts = Counts(
        lines=sum(group.lines for group in cleaned),
        bytes=sum(group.bytes for group in cleaned),
        read=sum(group.read for group in cleaned),
        kept=sum(entry.rows for entry in splits.values()),
        heldout=splits["heldout"].rows,
        dropped=add_counts([*(one.dropped for one in cleaned), *(one.dropped for one in encoded)]),
        contaminated=add_counts(group.contaminated for group in cleaned),
    )
    assert counts.read == counts.kept + sum(counts.dropped.values()), counts
    return counts


def _statistics(encoded: Sequence[tuple[EncodeTask, EncodeResult]]) -> dict[str, TokenizerStats]:
    """Language -> the counts over all its text."""
    total: dict[str, TokenizerStats] = {}
    for task, found in encoded:
        for language, counts in zip(task.subset.languages, found.statistics, strict=True):
            total[language] = total.get(language, TokenizerStats()) + counts
    return dict(sorted(total.items()))
