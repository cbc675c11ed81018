"""What entities and relations are called, for people to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isoglot.corpus import relational

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isoglot.corpus.knowledge.link.stages import Stages
    from isoglot.types import LongArray


def entity_labels(stages: Stages) -> Iterator[pa.Table]:
    """Every entity in order: item, label; an empty label where Wikidata gives none."""
    items = relational.read(stages.tables.wikidata("items"), ["item", "labels"])
    frame = items.select("item", "labels").join(stages.known(), on="item", how="semi").sort("item")
    preferred = _preferred(stages.tables.languages)
    yield from label_all(stages.entities(), frame.to_arrow_iter(), preferred)


def label_all(
    entities: LongArray, batches: Iterable[pa.RecordBatch], preferred: Sequence[str]
) -> Iterator[pa.Table]:
    """Every entity with its label; batches (item, labels) are sorted, and all are entities."""
    done = 0
    for batch in batches:
        found, rows = np.unique(batch["item"].to_numpy(), return_index=True)
        place = np.searchsorted(entities, found)
        new = place >= done  # the last item of a batch may come again in the next
        if not new.any():
            continue
        labels = first_labels(batch["labels"].take(pa.array(rows[new])), preferred)
        until = int(place[-1]) + 1
        yield _labelled(entities[done:until], place[new] - done, labels)
        done = until
    yield _labelled(entities[done:], np.zeros(0, np.int64), pa.array([], pa.string()))


def relation_labels(stages: Stages) -> dict[int, str]:
    """Relation -> label, as far as the dump names them."""
    if not stages.tables.has_properties():
        return {}
    columns = ["relation", "labels"]
    table = relational.read(stages.tables.wikidata("properties"), columns).to_arrow()
    table = table.combine_chunks().sort_by("relation")
    if not table.num_rows:
        return {}
    labels = first_labels(table["labels"].chunk(0), _preferred(stages.tables.languages))
    return dict(zip(table["relation"].to_pylist(), labels.to_pylist(), strict=True))


def first_labels(labels: pa.Array, preferred: Sequence[str]) -> pa.Array:
    """The label of each row in the first of these languages that it has one in; else ''."""
    flat = labels.flatten()
    rank = pc.index_in(flat.field("language"), pa.array(preferred, flat.field("language").type))
    rank = rank.fill_null(len(preferred)).to_numpy(zero_copy_only=False)
    owner = pc.list_parent_indices(labels).to_numpy(zero_copy_only=False)
    order = np.lexsort((rank, owner))
    order = order[rank[order] < len(preferred)]
    rows, first = np.unique(owner[order], return_index=True)
    return _spread(len(labels), rows, flat.field("text").take(pa.array(order[first])))


def _preferred(languages: Sequence[str]) -> list[str]:
    """English first, since most people read it."""
    return ["en", *(language for language in languages if language != "en")]


def _labelled(items: LongArray, place: LongArray, labels: pa.Array) -> pa.Table:
    return pa.table({"item": pa.array(items), "label": _spread(len(items), place, labels)})


def _spread(size: int, place: LongArray, labels: pa.Array) -> pa.Array:
    """A column with labels at some places and '' at the others."""
    where = np.full(size, len(labels))
    where[place] = np.arange(len(labels))
    column = pa.concat_arrays([labels.cast(pa.large_string()), pa.array([""], pa.large_string())])
    return column.take(pa.array(where))
