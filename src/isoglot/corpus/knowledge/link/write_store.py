"""The last stage of linking: results of the other stages become the corpus's knowledge store.

Labels of entities and relations are for people to read: English first, then the other languages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isoglot.atomic import replace_file, write_errors
from isoglot.corpus.knowledge import dataframes
from isoglot.corpus.knowledge.link.descriptions import SortedDescriptions
from isoglot.corpus.knowledge.link.joins import KEPT, RARE, REPEATED, drop_counts, relation_counts
from isoglot.corpus.knowledge.link.mentions import SortedSentences
from isoglot.corpus.knowledge.link.tokenize import counts_of
from isoglot.corpus.knowledge.store import FOLDER
from isoglot.corpus.knowledge.store_writer import KnowledgeWriter, are_facts_held_out
from isoglot.corpus.storage.shards import SPLITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from isoglot.corpus.engine.runner import Progress
    from isoglot.corpus.knowledge.link.run import Stages
    from isoglot.corpus.knowledge.store import KnowledgeManifest
    from isoglot.corpus.storage.shards import Split
    from isoglot.types import LongArray

_TRIPLE = ("subject", "relation", "object")


def write_store(stages: Stages, settings: Mapping[str, Any], report: Progress) -> KnowledgeManifest:
    """Writes the store; every dropped page, link and claim is counted by reason."""
    corpus, entities = stages.corpus, stages.entities()
    languages = stages.tables.languages
    dropped: dict[str, dict[str, int]] = {}
    tokenizer = corpus.manifest.tokenizer.fingerprint
    writer = KnowledgeWriter(corpus.folder / FOLDER, tokenizer=tokenizer, settings=settings)
    writer.entities(_entity_labels(stages))
    for number, language in enumerate(languages):
        report("write", number, len(languages) + 1)
        dropped[f"descriptions/{language}"] = _descriptions(writer, stages, language, entities)
        dropped[f"mentions/{language}"] = _mentions(writer, stages, language)
    report("write", len(languages), len(languages) + 1)
    dropped["triples"] = write_triples(writer, stages, entities)
    manifest = writer.finish(dropped=dropped)
    report("write", len(languages) + 1, len(languages) + 1)
    return manifest


def _descriptions(
    writer: KnowledgeWriter, stages: Stages, language: str, entities: LongArray
) -> dict[str, int]:
    shards = stages.description_shards(language)
    found = SortedDescriptions(shards)
    writer.descriptions(language, found.batches(entities))
    reasons = counts_of(shards)
    assert reasons.pop(KEPT, 0) == len(found.items) + found.repeated, "none is lost"
    return drop_counts({**reasons, REPEATED: found.repeated})


def _mentions(writer: KnowledgeWriter, stages: Stages, language: str) -> dict[str, int]:
    shards = stages.mention_shards(language)
    share, seed = stages.config.heldout_share, stages.config.heldout_seed
    found = SortedSentences(shards, heldout_share=share, heldout_seed=seed)
    written = 0
    for split in SPLITS:
        writer.sentences(language, split, found.sentences(split))
        written += writer.mentions(language, split, found.mentions(split))
    reasons = counts_of(mentions for _, mentions in shards)
    reasons[REPEATED] += reasons.pop(KEPT, 0) - written
    return drop_counts(reasons)


def write_triples(writer: KnowledgeWriter, stages: Stages, entities: LongArray) -> dict[str, int]:
    """Writes relations and triples; gives the counts of dropped claims."""
    from daft import col

    triples = dataframes.read_folder(stages.triples_folder)
    counts = relation_counts(triples).sort("relation").to_arrow()
    min_triples = stages.config.min_relation_triples
    frequent = counts.filter(pa.array(counts["count"].to_numpy() >= min_triples))
    relations = frequent["relation"].to_numpy().astype(np.int64)
    names = _relation_labels(stages)
    labels = [names.get(relation) or f"P{relation}" for relation in relations.tolist()]
    writer.relations([frequent.append_column("label", pa.array(labels, pa.string()))])

    kept = triples.where((col("status") == KEPT) & col("relation").is_in(relations.tolist()))
    sorted_file = stages.work / "triples.arrow"
    _sort(kept.select(*_TRIPLE), sorted_file)
    for split in SPLITS:
        writer.triples(split, _numbered(sorted_file, split, stages, entities, relations))

    status = triples.groupby("status").agg(col("subject").count().alias("number")).to_pydict()
    reasons = dict(zip(status["status"], status["number"], strict=True))
    repeated = stages.claims().count_rows() - sum(reasons.values())
    rare = reasons.pop(KEPT, 0) - sum(frequent["count"].to_pylist())
    return drop_counts({**reasons, REPEATED: repeated, RARE: rare})


def _sort(frame: Any, file: Path) -> None:
    """Writes the rows of a dataframe, sorted, as an Arrow file."""
    schema = pa.schema([(name, pa.int64()) for name in _TRIPLE])
    with (
        write_errors(file),
        replace_file(file) as partial,
        pa.OSFile(str(partial), "wb") as sink,
        pa.ipc.new_file(sink, schema) as out,
    ):
        for batch in frame.sort(list(_TRIPLE)).to_arrow_iter():
            out.write_batch(batch.select(_TRIPLE).cast(schema))


def _numbered(
    file: Path, split: Split, stages: Stages, entities: LongArray, relations: LongArray
) -> Iterator[pa.Table]:
    """The triples of a split, in numbers of entities and relations."""
    config = stages.config
    with pa.memory_map(str(file)) as source:
        batches = pa.ipc.open_file(source)
        for number in range(batches.num_record_batches):
            columns = [column.to_numpy() for column in batches.get_batch(number)]
            share, seed = config.heldout_share, config.heldout_seed
            held = are_facts_held_out(columns[0], columns[2], share=share, seed=seed)
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


def _entity_labels(stages: Stages) -> Iterator[pa.Table]:
    """Every entity in order: item, label."""
    items = dataframes.read(stages.tables.wikidata("items"), ["item", "labels"])
    known = items.select("item", "labels").join(stages.known_items(), on="item", how="semi")
    batches = known.sort("item").to_arrow_iter()
    yield from label_entities(stages.entities(), batches, _preferred(stages.tables.languages))


def label_entities(
    entities: LongArray, batches: Iterable[pa.RecordBatch], preferred: Sequence[str]
) -> Iterator[pa.Table]:
    """Every entity with its label, '' where Wikidata has none.

    Batches (item, labels) are sorted, and all their items are entities.
    """
    done = 0
    for batch in batches:
        found, rows = np.unique(batch["item"].to_numpy(), return_index=True)
        place = np.searchsorted(entities, found)
        new = place >= done  # the last item of a batch may come again in the next
        if not new.any():
            continue
        labels = first_labels(batch["labels"].take(pa.array(rows[new])), preferred)
        items = entities[done : int(place[-1]) + 1]
        yield pa.table({"item": items, "label": _spread(len(items), place[new] - done, labels)})
        done += len(items)
    rest = entities[done:]
    yield pa.table({"item": rest, "label": pa.repeat(pa.scalar("", pa.large_string()), len(rest))})


def _relation_labels(stages: Stages) -> dict[int, str]:
    """Relation -> label, for the relations with a label in the dump."""
    if not stages.tables.has_properties():
        return {}
    properties = stages.tables.wikidata("properties")
    table = dataframes.read(properties, ["relation", "labels"]).sort("relation").to_arrow()
    labels = first_labels(table["labels"].combine_chunks(), _preferred(stages.tables.languages))
    return dict(zip(table["relation"].to_pylist(), labels.to_pylist(), strict=True))


def first_labels(labels: pa.Array, preferred: Sequence[str]) -> pa.Array:
    """The label of each row in the first of these languages that has one; else ''."""
    flat = labels.flatten()
    rank = pc.index_in(flat.field("language"), pa.array(preferred, flat.field("language").type))
    rank = rank.fill_null(len(preferred)).to_numpy(zero_copy_only=False)
    owner = pc.list_parent_indices(labels).to_numpy(zero_copy_only=False)
    order = np.lexsort((rank, owner))
    order = order[rank[order] < len(preferred)]
    rows, first = np.unique(owner[order], return_index=True)
    return _spread(len(labels), rows, flat.field("text").take(pa.array(order[first])))


def _preferred(languages: Sequence[str]) -> list[str]:
    return ["en", *(language for language in languages if language != "en")]


def _spread(size: int, place: LongArray, labels: pa.Array) -> pa.Array:
    """A column with labels at some places and '' at the others."""
    where = np.full(size, len(labels))
    where[place] = np.arange(len(labels))
    column = pa.concat_arrays([labels.cast(pa.large_string()), pa.array([""], pa.large_string())])
    return column.take(pa.array(where))
