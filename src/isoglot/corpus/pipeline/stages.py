"""The stages of `prepare`, each as tasks of the engine.

evaluation files --exclude--> index of their texts
raw files --split_large--> parts --clean--> cleaned text --deduplicate--> duplicate rows
          --sample--> counted words --tokenizer--> tokenizer --encode--> shards
"""

from __future__ import annotations

import logging
from collections import Counter
from hashlib import sha256
from operator import attrgetter
from typing import TYPE_CHECKING

from isoglot.corpus import decontamination
from isoglot.corpus.cleaning import stage as cleaning
from isoglot.corpus.cleaning.clean_text import CleanedGroup
from isoglot.corpus.cleaning.dropped_lines import CLEANING, ENCODING
from isoglot.corpus.cleaning.slices import (
    BYTES_PER_TOKEN,
    group_slices,
    slice_texts,
    whole_texts,
)
from isoglot.corpus.cleaning.stage import CleanResult, CleanTask, clean_files
from isoglot.corpus.decontamination import EvaluationFileTask, hash_evaluation_file, write_index
from isoglot.corpus.deduplication import duplicates
from isoglot.corpus.deduplication.collect import collect_duplicates, collect_tasks
from isoglot.corpus.deduplication.duplicates import (
    DuplicateKind,
    DuplicateSearch,
    find_duplicates,
    hashed_parts,
    num_buckets,
    write_parts,
)
from isoglot.corpus.engine.runner import task_key
from isoglot.corpus.pipeline.splitting import split_large
from isoglot.corpus.reading.sources import group_files
from isoglot.corpus.storage.corpus import TOKENIZER_FOLDER
from isoglot.corpus.storage.shards import SPLITS
from isoglot.corpus.tokenization import build, encode, sample
from isoglot.corpus.tokenization.build import BuiltTokenizer, TokenizerTask, build_tokenizer
from isoglot.corpus.tokenization.encode import EncodeResult, EncodeTask, encode_group
from isoglot.corpus.tokenization.sample import count_drawn_words, count_sentences, sample_tasks
from isoglot.errors import CorpusError
from isoglot.folders import with_home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.corpus.engine.runner import StageRunner
    from isoglot.corpus.pipeline.plan import PrepareConfig, PreparePlan
    from isoglot.corpus.reading.sources import FileGroup

_log = logging.getLogger(__name__)
_SMALL_ROWS = 1 << 19
"""Lines whose hashes one process searches in a second or two."""
_SMALL_TEXT_BYTES = 1 << 27
"""Text that one process samples in less than a second."""


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
    config, inputs = plan.config, plan.inputs
    groups = group_files(plan.subsets)
    size = sum(inputs[path].bytes for group in groups for path in group.files)
    groups = split_large(groups, inputs, runner)
    excluded_files = tuple((inputs[path].file, inputs[path].sha256) for path in plan.excluded)
    tasks = [
        CleanTask(
            group=group,
            inputs=tuple(inputs[path].sha256 for path in group.files),
            folder=runner.work / "cleaned" / group.place,
            config=config.clean,
            heldout_share=config.heldout_share,
            heldout_seed=config.heldout_seed,
            pretokenize=dict(plan.pretokenizer.methods),
            duplicates=config.duplicates,
            buckets=num_buckets(size, config.duplicates.partitions),
            excluded=excluded,
            excluded_files=excluded_files,
            dropped_file=_dropped_file(config, group.place + CLEANING),
        )
        for group in groups
    ]
    parts = Counter((group.subset.folder, group.number) for group in groups)
    results = runner.run(
        "clean",
        clean_files,
        tasks,
        name=lambda task: task.group.name,
        sizes=[
            sum(inputs[path].bytes for path in group.files)
            // parts[group.subset.folder, group.number]
            for group in groups
        ],
        cache=runner.cache(CleanResult, cleaning.is_complete, attrgetter("folder")),
    )
    cleaned = list(zip(tasks, results, strict=True))
    _warn_of_swapped(cleaned)
    if not any(result.rows["train"] for result in results):
        reasons = sum((Counter(result.dropped) for result in results), Counter())
        told = ", ".join(f"{reason}: {number}" for reason, number in reasons.most_common())
        raise CorpusError(
            f"{tasks[0].group.name}: no line of it{' or of any other file' * (len(tasks) > 1)} was "
            f"kept for training ({told or 'the files are empty'}). Look at `format`, `options` and "
            "`clean`; --dropped FOLDER writes out every line with its reason (docs/prepare.md)."
        )
    return cleaned


def _warn_of_swapped(cleaned: Sequence[tuple[CleanTask, CleanResult]]) -> None:
    """Tell of files of pairs whose sides are in the other order, once for each pair of a source."""
    swapped: dict[str, list[FileGroup]] = {}
    for task, result in cleaned:
        if result.swapped:
            swapped.setdefault(task.group.subset.folder, []).append(task.group)
    for groups in swapped.values():
        subset = groups[0].subset
        (first, second), (one, other) = subset.languages, subset.spelled
        remedy = (
            f"Name the pair {other}-{one}, or exchange `first` and `second` in the options of the "
            "source."
        )
        if len(groups[0].files) == 2:
            remedy = f"List the file of {one} first."
        _log.warning(
            "%s%s: the first side looks like %s and the second like %s, and "
            "sources.%s.files.%s-%s says that %s is first. %s",
            " and ".join(map(str, groups[0].files)),
            f" and {len(groups) - 1:,} more" if len(groups) > 1 else "",
            *(second, first, subset.source, one, other, one, remedy),
        )


def _dropped_file(config: PrepareConfig, name: str) -> Path | None:
    if config.dropped_folder is None:
        return None
    return with_home(config.dropped_folder).absolute() / name


def deduplicate(
    cleaned: Sequence[tuple[CleanTask, CleanResult]], runner: StageRunner
) -> list[CleanedGroup]:
    """Every file group, or part of one, with its duplicate rows."""
    config, buckets = cleaned[0][0].duplicates, cleaned[0][0].buckets
    if config.scope == "none":
        return [CleanedGroup(task, result, None) for task, result in cleaned]
    kinds: list[DuplicateKind] = ["duplicate"]
    if config.near:
        kinds.append("near-duplicate")
    parts, file = hashed_parts(cleaned), runner.work / "duplicates" / "parts.json"
    write_parts(file, parts)
    keys = "".join(task_key(task) for task, _ in cleaned)
    searches = [
        DuplicateSearch(
            kind=kind,
            bucket=bucket,
            buckets=buckets,
            leaves=config.partitions and -(-config.partitions // buckets),
            parts=file,
            digest=sha256(keys.encode()).hexdigest(),
            similarity=config.similarity,
            folder=file.parent,
        )
        for kind in kinds
        for bucket in range(buckets)
    ]
    rows = sum(sum(result.rows.values()) for _, result in cleaned)
    small = rows < _SMALL_ROWS
    cache = runner.cache(int, duplicates.is_complete, attrgetter("output"))
    runner.run(
        "duplicates",
        find_duplicates,
        searches,
        name=lambda search: f"{search.kind}s, bucket {search.bucket}",
        # what takes a second is sooner done again than recorded
        cache=None if small else cache,
        small=small,
    )
    collected = runner.run(
        "collect duplicates",
        collect_duplicates,
        collect_tasks(file, parts, kinds, buckets),
        name=lambda task: f"duplicates of parts {task.first} to {task.last}",
        small=small,
    )
    found = (one for of_task in collected for one in of_task)
    return [CleanedGroup(*one, rows) for one, rows in zip(cleaned, found, strict=True)]


def sample_stage(
    plan: PreparePlan, runner: StageRunner, groups: Sequence[CleanedGroup]
) -> tuple[tuple[Path, str], ...]:
    """Files of the words that the tokenizer is trained on, with their hashes."""
    tasks = sample_tasks(
        list(whole_texts(groups, "train")),
        count_sentences(groups),
        plan.config.tokenizer,
        runner.work / "sample",
    )
    hashes = runner.run(
        "sample",
        count_drawn_words,
        tasks,
        name=lambda task: f"sample of {task.text.text}",
        sizes=[task.text.end.byte for task in tasks],
        cache=runner.cache(str, sample.is_complete, attrgetter("output")),
        small=sum(task.text.end.byte for task in tasks) < _SMALL_TEXT_BYTES,
    )
    return tuple((task.output, found) for task, found in zip(tasks, hashes, strict=True))


def tokenizer_stage(
    plan: PreparePlan, runner: StageRunner, groups: Sequence[CleanedGroup]
) -> BuiltTokenizer:
    """Trains the tokenizer on a sample of the cleaned text, or copies the given one."""
    given = plan.given_tokenizer
    task = TokenizerTask(
        config=plan.config.tokenizer,
        form=plan.config.clean.unicode,
        pretokenize=dict(plan.pretokenizer.methods),
        given=given,
        inputs=tuple(e.sha256 for p, e in plan.inputs.items() if given and p.parent == given),
        sample=() if given else sample_stage(plan, runner, groups),
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
        for group in group_slices(slice_texts(groups, split, group_bytes), group_bytes):
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
