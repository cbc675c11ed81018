"""Triples and the vocabulary of relations, from joined claims to the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from isoglot.corpus import relational
from isoglot.corpus.disk import PARTIAL, writing
from isoglot.corpus.heldout import SPLITS
from isoglot.corpus.knowledge.link.fates import KEPT, RARE, REPEATED, told
from isoglot.corpus.knowledge.link.joins import relation_counts
from isoglot.corpus.knowledge.link.labels import relation_labels
from isoglot.corpus.knowledge.store_split import are_held_out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from isoglot.corpus.heldout import Split
    from isoglot.corpus.knowledge.link.stages import Stages
    from isoglot.corpus.knowledge.store_writer import KnowledgeWriter
    from isoglot.types import LongArray

_COLUMNS = ("subject", "relation", "object")


def write_triples(writer: KnowledgeWriter, stages: Stages, entities: LongArray) -> dict[str, int]:
    """Writes relations and triples; gives why the other claims are not among them."""
    from daft import col

    triples = relational.read_folder(stages.triples_folder)
    counts = relation_counts(triples).sort("relation").to_arrow()
    frequent = counts.filter(pa.array(counts["count"].to_numpy() >= stages.config.relation_floor))
    relations = frequent["relation"].to_numpy().astype(np.int64)
    names = relation_labels(stages)
    labels = [names.get(relation) or f"P{relation}" for relation in relations.tolist()]
    writer.relations([frequent.append_column("label", pa.array(labels, pa.string()))])

    kept = triples.where((col("fate") == KEPT) & col("relation").is_in(relations.tolist()))
    sorted_file = stages.work / "triples.arrow"
    _sort(kept.select(*_COLUMNS), sorted_file)
    for split in SPLITS:
        writer.triples(split, _numbered(sorted_file, split, stages, entities, relations))

    fates = triples.groupby("fate").agg(col("subject").count().alias("number")).to_pydict()
    reasons = dict(zip(fates["fate"], fates["number"], strict=True))
    repeated = stages.claims().count_rows() - sum(reasons.values())
    rare = reasons.pop(KEPT, 0) - sum(frequent["count"].to_pylist())
    return told({**reasons, REPEATED: repeated, RARE: rare})


def _sort(frame: Any, file: Path) -> None:
    """Writes the rows of a dataframe in order, to be read as often as needed."""
    schema = pa.schema([(name, pa.int64()) for name in _COLUMNS])
    partial = file.with_name(file.name + PARTIAL)
    with writing(file), pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
        for batch in frame.sort(list(_COLUMNS)).to_arrow_iter():
            out.write_batch(batch.select(_COLUMNS).cast(schema))
    with writing(file):
        partial.replace(file)


def _numbered(
    file: Path, split: Split, stages: Stages, entities: LongArray, relations: LongArray
) -> Iterator[pa.Table]:
    """The triples of a split, in numbers of entities and relations."""
    config = stages.config
    with pa.memory_map(str(file)) as source:
        batches = pa.ipc.open_file(source)
        for number in range(batches.num_record_batches):
            columns = [column.to_numpy() for column in batches.get_batch(number)]
            held = are_held_out(*columns, share=config.heldout_share, seed=config.heldout_seed)
            subject, relation, object_ = (
                column[held if split == "heldout" else ~held] for column in columns
            )
            yield pa.table(
                {
                    "subject": pa.array(np.searchsorted(entities, subject), pa.int32()),
                    "relation": pa.array(np.searchsorted(relations, relation), pa.int32()),
                    "object": pa.array(np.searchsorted(entities, object_), pa.int32()),
                }
            )
