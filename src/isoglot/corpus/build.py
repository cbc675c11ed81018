"""Prepares a corpus: raw files in, shards of token ids, a tokenizer and a manifest out.

    order --> exclude --> clean (per file) --> duplicates --> tokenizer --> encode --> manifest

Every stage is a function of one piece of the work. The pieces of a stage can run in several
processes or on a cluster, and the corpus is the same byte for byte wherever they do.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.cluster import connected
from isoglot.corpus.dropped import remove_others
from isoglot.corpus.engine import LOCAL
from isoglot.corpus.manifest import FILE
from isoglot.corpus.order import Order, order_of
from isoglot.corpus.output import WORK, finish, start_afresh
from isoglot.corpus.stages import (
    clean_all,
    encode_all,
    find_repeated,
    gather_excluded,
    make_the_tokenizer,
)
from isoglot.corpus.summary import number_shards, summarise
from isoglot.corpus.times import Times
from isoglot.corpus.workshop import Workshop, silent

if TYPE_CHECKING:
    from isoglot.corpus.config import PrepareConfig
    from isoglot.corpus.manifest import Manifest
    from isoglot.corpus.workshop import Progress


def prepare(
    config: PrepareConfig,
    output: Path | str,
    *,
    base: Path | str = ".",
    workers: int = 1,
    cluster: str = LOCAL,
    progress: Progress | None = None,
    times: Times | None = None,
) -> Manifest:
    """Prepares a corpus in the folder `output`, unless it is there already, whole and up to date.

    Paths in the settings are relative to `base`, or to the folder that `config.base` names. A run
    that was interrupted goes on where it stopped; a corpus of other settings or inputs is replaced.
    `cluster` is `local` (this machine), `auto` or the address of a Ray cluster whose machines see
    the same files. `times` is filled in.
    """
    report = progress or silent
    output, base = Path(output), Path(base)
    if cluster != LOCAL:
        # its workers run in folders of their own
        output, base = output.resolve(), base.resolve()
    order = order_of(config, output, base)
    present = order.present()
    if present is not None:
        report("up to date", 1, 1)
        return present
    start_afresh(order.output)
    shop = Workshop(
        work=order.output / WORK,
        workers=workers,
        cluster=cluster,
        report=report,
        times=times or Times(),
    )
    with nullcontext() if cluster == LOCAL else connected(cluster):
        return _prepare(order, shop)


def is_prepared(config: PrepareConfig, output: Path, *, base: Path) -> bool:
    """Would `prepare` find nothing to do?"""
    return (output / FILE).is_file() and order_of(config, output, base).present() is not None


def _prepare(order: Order, shop: Workshop) -> Manifest:
    """All stages."""
    tasks, cleaned = clean_all(order, shop, gather_excluded(order, shop))
    repeated = find_repeated(tasks, shop)
    made = make_the_tokenizer(order, shop, tasks, cleaned, repeated)
    encode_tasks, encoded = encode_all(order, shop, tasks, cleaned, repeated, made)
    for task, result in zip(tasks, cleaned, strict=True):
        shop.times.add(task.unit.cell.folder, result.seconds)
    for group, shards_made in zip(encode_tasks, encoded, strict=True):
        shop.times.add(group.cell.folder, shards_made.seconds)
    shards, moves = number_shards(encode_tasks, encoded, order.output)
    manifest = summarise(
        order.cells,
        list(zip(tasks, cleaned, strict=True)),
        list(zip(encode_tasks, encoded, strict=True)),
        shards,
        tokenizer=made.entry,
        settings=order.settings,
        inputs=tuple(order.inputs.values()),
    )
    for entry in made.entry.files:
        moves[made.facts.folder / Path(entry.file).name] = order.output / entry.file
    paths = [*(task.dropped for task in tasks), *(task.dropped for task in encode_tasks)]
    remove_others(path for path in paths if path is not None)
    finish(order.output, manifest, moves)
    return manifest
