"""The stages of preparing, each as tasks of the engine.

evaluation files --gather_excluded--> index of lines
raw files --clean_all--> cleaned text --find_repeated--> rows to leave out
          --make_the_tokenizer--> tokenizer --encode_all--> shards
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus import cleaned as cleaned_module
from isoglot.corpus import encode as encode_module
from isoglot.corpus import make_tokenizer as tokenizer_module
from isoglot.corpus.cells import Unit, units_of
from isoglot.corpus.cleaned import Cleaned, CleanTask
from isoglot.corpus.cleaning import clean_unit
from isoglot.corpus.contamination import Gathered, GatherTask, gather, write_index
from isoglot.corpus.contamination import index as contamination
from isoglot.corpus.corpus import TOKENIZER_FOLDER
from isoglot.corpus.dropped import CLEANING, ENCODING
from isoglot.corpus.duplicates import find_duplicates
from isoglot.corpus.duplicates.stage import partitions_for, repeated_of, searches
from isoglot.corpus.encode import Encoded, EncodeTask, encode_group
from isoglot.corpus.grouping import BYTES_A_TOKEN, grouped, stretches_of
from isoglot.corpus.heldout import SPLITS
from isoglot.corpus.make_tokenizer import MadeTokenizer, TokenizerTask, make_tokenizer
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.corpus.cleaned import Repeated
    from isoglot.corpus.config import PrepareConfig
    from isoglot.corpus.order import Order
    from isoglot.corpus.workshop import Workshop

_LITTLE = 1 << 26
"""Bytes of hashes that one process looks through in a second or two."""


def gather_excluded(order: Order, shop: Workshop) -> Path | None:
    """The index of the lines of the evaluation files, if there are any."""
    if not order.excluded:
        return None
    tasks = [
        GatherTask(
            file=path,
            sha256=order.inputs[path].sha256,
            shortest=order.config.exclude_shortest,
            output=shop.work / "excluded" / f"{number:05d}.npy",
        )
        for number, path in enumerate(order.excluded)
    ]
    shop.run(
        "exclude",
        gather,
        tasks,
        name=lambda task: str(task.file),
        sizes=[order.inputs[task.file].bytes for task in tasks],
        recorded=(Gathered, contamination.is_whole, attrgetter("output")),
    )
    index = shop.work / "excluded.npy"
    write_index(tasks, index)
    return index


def clean_all(
    order: Order, shop: Workshop, excluded: Path | None
) -> tuple[list[CleanTask], list[Cleaned]]:
    """Cleans the text of every unit."""
    units = units_of(order.cells)
    sizes = [sum(order.inputs[path].bytes for path in unit.files) for unit in units]
    partitions = order.config.duplicates.partitions or partitions_for(sum(sizes))
    tasks = [_clean_task(order, shop, unit, partitions, excluded) for unit in units]
    cleaned = shop.run(
        "clean",
        clean_unit,
        tasks,
        name=lambda task: task.unit.name,
        sizes=sizes,
        recorded=(Cleaned, cleaned_module.is_whole, attrgetter("folder")),
    )
    if not any(result.rows["train"] for result in cleaned):
        reasons = sum((Counter(result.dropped) for result in cleaned), Counter())
        told = ", ".join(f"{reason}: {number}" for reason, number in reasons.most_common())
        raise CorpusError(
            f"{tasks[0].unit.name}: no line of it{' or of any other file' * (len(tasks) > 1)} was "
            f"kept for training ({told or 'the files are empty'}). Look at `format`, `options` and "
            "`clean`; --dropped FOLDER writes out every line with its reason (docs/prepare.md)."
        )
    return tasks, cleaned


def _clean_task(
    order: Order, shop: Workshop, unit: Unit, partitions: int, excluded: Path | None
) -> CleanTask:
    config, name = order.config, f"{unit.cell.folder}/{unit.number:05d}"
    return CleanTask(
        unit=unit,
        inputs=tuple(order.inputs[path].sha256 for path in unit.files),
        folder=shop.work / "cleaned" / name,
        config=config.clean,
        heldout_share=config.heldout_share,
        heldout_seed=config.heldout_seed,
        pretokenize=dict(order.pretokenization.names),
        duplicates=config.duplicates,
        partitions=partitions,
        excluded=excluded,
        excluded_files=tuple(
            (order.inputs[path].file, order.inputs[path].sha256) for path in order.excluded
        ),
        dropped=_dropped(config, name + CLEANING),
        piece_bytes=BYTES_A_TOKEN * config.shard_tokens,
    )


def _dropped(config: PrepareConfig, name: str) -> Path | None:
    return None if config.dropped is None else Path(config.dropped).expanduser().absolute() / name


def find_repeated(tasks: Sequence[CleanTask], shop: Workshop) -> list[Repeated | None]:
    """The lines of each unit that others repeat."""
    wanted = searches(tasks, shop.work / "duplicates")
    if not wanted:
        return [None] * len(tasks)
    shop.run(
        "duplicates",
        find_duplicates,
        wanted,
        name=lambda search: f"{search.kind}s, part {search.partition}",
        sizes=[1] * len(wanted),
        recorded=None,
        little=sum(path.stat().st_size for path in wanted[0].hashes) < _LITTLE,
    )
    return repeated_of(tasks, wanted)


def make_the_tokenizer(
    order: Order,
    shop: Workshop,
    tasks: Sequence[CleanTask],
    cleaned: Sequence[Cleaned],
    repeated: Sequence[Repeated | None],
) -> MadeTokenizer:
    """Trains the tokenizer on the cleaned text, or takes the given one."""
    sentences: Counter[str] = Counter()
    for unit, result, left_out in zip(tasks, cleaned, repeated, strict=True):
        rows = result.rows["train"]
        rows -= sum(left_out.rows["train"].values()) if left_out is not None else 0
        for language in unit.unit.cell.languages:
            sentences[language] += rows
    given = order.given
    task = TokenizerTask(
        config=order.config.tokenizer,
        form=order.config.clean.unicode,
        pretokenize=dict(order.pretokenization.names),
        given=given,
        inputs=tuple(e.sha256 for p, e in order.inputs.items() if given and p.parent == given),
        stretches=() if given else tuple(stretches_of(tasks, cleaned, repeated, "train")),
        sentences=dict(sentences),
        folder=shop.work / TOKENIZER_FOLDER,
    )
    (made,) = shop.run(
        "tokenizer",
        make_tokenizer,
        [task],
        name=lambda _: "the tokenizer",
        sizes=[1],
        recorded=(MadeTokenizer, tokenizer_module.is_whole, attrgetter("folder")),
        little=given is not None,
    )
    return made


def encode_all(
    order: Order,
    shop: Workshop,
    tasks: Sequence[CleanTask],
    cleaned: Sequence[Cleaned],
    repeated: Sequence[Repeated | None],
    made: MadeTokenizer,
) -> tuple[list[EncodeTask], list[Encoded]]:
    """Writes the shards of every cell."""
    config = order.config
    wanted = []
    for split in SPLITS:
        numbers: Counter[str] = Counter()
        stretches = list(stretches_of(tasks, cleaned, repeated, split))
        for group in grouped(stretches, BYTES_A_TOKEN * config.shard_tokens):
            cell = group[0].cell
            name = f"{cell.folder}/{split}-{numbers[cell.folder]:05d}"
            wanted.append(
                EncodeTask(
                    cell=cell,
                    split=split,
                    number=numbers[cell.folder],
                    stretches=group,
                    folder=shop.work / "encoded",
                    tokenizer=made.facts,
                    shard_tokens=config.shard_tokens,
                    dropped=_dropped(config, name + ENCODING),
                )
            )
            numbers[cell.folder] += 1
    encoded = shop.run(
        "encode",
        encode_group,
        wanted,
        name=lambda task: task.name,
        sizes=[task.bytes for task in wanted],
        recorded=(Encoded, encode_module.is_whole, attrgetter("name")),
    )
    return wanted, encoded
