"""The stages of `prepare`, each as tasks of the engine.

evaluation files --exclude--> index of their texts
raw files --clean--> cleaned text --deduplicate--> duplicate rows
          --tokenizer--> tokenizer --encode--> shards
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from isoglot.corpus import decontamination
from isoglot.corpus.cleaning import stage as cleaning
from isoglot.corpus.cleaning.clean_text import (
    BYTES_PER_TOKEN,
    CLEANING,
    ENCODING,
    CleanedGroup,
    group_slices,
    slice_texts,
)
from isoglot.corpus.cleaning.stage import CleanResult, CleanTask, clean_files
from isoglot.corpus.decontamination import EvaluationFileTask, hash_evaluation_file, write_index
from isoglot.corpus.deduplication.duplicates import (
    collect_duplicates,
    find_duplicates,
    make_searches,
    num_partitions,
)
from isoglot.corpus.reading.sources import group_files
from isoglot.corpus.storage.corpus import TOKENIZER_FOLDER
from isoglot.corpus.storage.shards import SPLITS
from isoglot.corpus.tokenization import build, encode
from isoglot.corpus.tokenization.build import BuiltTokenizer, TokenizerTask, build_tokenizer
from isoglot.corpus.tokenization.encode import EncodeResult, EncodeTask, encode_group
from isoglot.errors import CorpusError
from isoglot.folders import with_home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.corpus.engine.runner import StageRunner
    from isoglot.corpus.pipeline.plan import PrepareConfig, PreparePlan

_SMALL_HASH_BYTES = 1 << 26
"""Bytes of hashes that one process searches in a second or two."""


def index_excluded(plan: PreparePlan, runner: StageRunner) -> Path | None:
    """The index of the texts of the evaluation files, if there are any."""
    if not plan.excluded:
        return None
    tasks = [
        EvaluationFileTask(
            file=path,
            sha256=plan.inputs[path].sha256,
            min_bytes=plan.config.exclude_min_bytes,
            output=runner.work / "excluded" / f"{number:05d}.npy",
        )
        for number, path in enumerate(plan.excluded)
    ]
    runner.run(
        "exclude",
        hash_evaluation_file,
        tasks,
        name=lambda task: str(task.file),
        sizes=[plan.inputs[task.file].bytes for task in tasks],
        cache=runner.cache(int, decontamination.is_complete, attrgetter("output")),
    )
    path = runner.work / "excluded.npy"
    write_index(tasks, path)
    return path


def clean_all(
    plan: PreparePlan, runner: StageRunner, excluded: Path | None
) -> list[tuple[CleanTask, CleanResult]]:
    """Cleans the text of every file group."""
    groups = group_files(plan.subsets)
    sizes = [sum(plan.inputs[path].bytes for path in group.files) for group in groups]
    config, inputs = plan.config, plan.inputs
    excluded_files = tuple((inputs[path].file, inputs[path].sha256) for path in plan.excluded)
    names = [f"{group.subset.folder}/{group.number:05d}" for group in groups]
    tasks = [
        CleanTask(
            group=group,
            inputs=tuple(inputs[path].sha256 for path in group.files),
            folder=runner.work / "cleaned" / name,
            config=config.clean,
            heldout_share=config.heldout_share,
            heldout_seed=config.heldout_seed,
            pretokenize=dict(plan.pretokenizer.methods),
            duplicates=config.duplicates,
            partitions=config.duplicates.partitions or num_partitions(sum(sizes)),
            excluded=excluded,
            excluded_files=excluded_files,
            dropped_file=_dropped_file(config, name + CLEANING),
            slice_bytes=BYTES_PER_TOKEN * config.shard_tokens,
        )
        for group, name in zip(groups, names, strict=True)
    ]
    results = runner.run(
        "clean",
        clean_files,
        tasks,
        name=lambda task: task.group.name,
        sizes=sizes,
        cache=runner.cache(CleanResult, cleaning.is_complete, attrgetter("folder")),
    )
    if not any(result.rows["train"] for result in results):
        reasons = sum((Counter(result.dropped) for result in results), Counter())
        told = ", ".join(f"{reason}: {number}" for reason, number in reasons.most_common())
        raise CorpusError(
            f"{tasks[0].group.name}: no line of it{' or of any other file' * (len(tasks) > 1)} was "
            f"kept for training ({told or 'the files are empty'}). Look at `format`, `options` and "
            "`clean`; --dropped FOLDER writes out every line with its reason (docs/prepare.md)."
        )
    return list(zip(tasks, results, strict=True))


def _dropped_file(config: PrepareConfig, name: str) -> Path | None:
    if config.dropped_folder is None:
        return None
    return with_home(config.dropped_folder).absolute() / name


def deduplicate(
    cleaned: Sequence[tuple[CleanTask, CleanResult]], runner: StageRunner
) -> list[CleanedGroup]:
    """Every file group with its duplicate rows."""
    tasks = [task for task, _ in cleaned]
    searches = make_searches(tasks, runner.work / "duplicates")
    if not searches:
        return [CleanedGroup(task, result, None) for task, result in cleaned]
    runner.run(
        "duplicates",
        find_duplicates,
        searches,
        name=lambda search: f"{search.kind}s, part {search.partition}",
        small=sum(path.stat().st_size for path in searches[0].hashes) < _SMALL_HASH_BYTES,
    )
    duplicates = collect_duplicates(tasks, searches)
    return [CleanedGroup(*one, rows) for one, rows in zip(cleaned, duplicates, strict=True)]


def tokenizer_stage(
    plan: PreparePlan, runner: StageRunner, groups: Sequence[CleanedGroup]
) -> BuiltTokenizer:
    """Trains the tokenizer on the cleaned text, or copies the given one."""
    sentences: Counter[str] = Counter()
    for cleaned, result, duplicates in groups:
        rows = result.rows["train"]
        rows -= sum(duplicates.rows["train"].values()) if duplicates is not None else 0
        for language in cleaned.group.subset.languages:
            sentences[language] += rows
    given = plan.given_tokenizer
    task = TokenizerTask(
        config=plan.config.tokenizer,
        form=plan.config.clean.unicode,
        pretokenize=dict(plan.pretokenizer.methods),
        given=given,
        inputs=tuple(e.sha256 for p, e in plan.inputs.items() if given and p.parent == given),
        slices=() if given else tuple(slice_texts(groups, "train")),
        sentences=dict(sentences),
        folder=runner.work / TOKENIZER_FOLDER,
    )
    (built,) = runner.run(
        "tokenizer",
        build_tokenizer,
        [task],
        name=lambda _: "the tokenizer",
        cache=runner.cache(BuiltTokenizer, build.is_complete, attrgetter("folder")),
        small=given is not None,
    )
    return built


def encode_all(
    plan: PreparePlan, runner: StageRunner, groups: Sequence[CleanedGroup], built: BuiltTokenizer
) -> list[tuple[EncodeTask, EncodeResult]]:
    """Writes the shards of every subset."""
    config = plan.config
    group_bytes = BYTES_PER_TOKEN * config.shard_tokens
    tasks = []
    for split in SPLITS:
        numbers: Counter[str] = Counter()
        for group in group_slices(slice_texts(groups, split), group_bytes):
            subset = group[0].subset
            name = f"{subset.folder}/{split}-{numbers[subset.folder]:05d}"
            tasks.append(
                EncodeTask(
                    subset=subset,
                    split=split,
                    number=numbers[subset.folder],
                    slices=group,
                    folder=runner.work / "encoded",
                    tokenizer=built.info,
                    shard_tokens=config.shard_tokens,
                    dropped_file=_dropped_file(config, name + ENCODING),
                )
            )
            numbers[subset.folder] += 1
    encoded = runner.run(
        "encode",
        encode_group,
        tasks,
        name=lambda task: task.name,
        sizes=[task.bytes for task in tasks],
        cache=runner.cache(EncodeResult, encode.is_complete, attrgetter("name")),
    )
    return list(zip(tasks, encoded, strict=True))
