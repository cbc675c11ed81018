"""The last stage: what the others left becomes the knowledge store of the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.corpus.heldout import SPLITS
from isoglot.corpus.knowledge.link.fates import KEPT, REPEATED, told
from isoglot.corpus.knowledge.link.gather import Descriptions, Sentences
from isoglot.corpus.knowledge.link.labels import entity_labels
from isoglot.corpus.knowledge.link.parts import counts_of
from isoglot.corpus.knowledge.link.triples import write_triples
from isoglot.corpus.knowledge.store_about import FOLDER
from isoglot.corpus.knowledge.store_writer import KnowledgeWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from isoglot.corpus.knowledge.link.stages import Stages
    from isoglot.corpus.knowledge.store_about import About
    from isoglot.corpus.workshop import Progress
    from isoglot.types import LongArray


def write_store(stages: Stages, settings: Mapping[str, Any], report: Progress) -> About:
    """Writes the store; every page, link and claim that is not in it is counted by reason."""
    corpus, entities = stages.corpus, stages.entities()
    languages = stages.tables.languages
    dropped: dict[str, dict[str, int]] = {}
    with KnowledgeWriter(
        corpus.folder / FOLDER,
        tokenizer=corpus.manifest.tokenizer.fingerprint,
        settings=settings,
    ) as writer:
        writer.entities(entity_labels(stages))
        for number, language in enumerate(languages):
            report("write", number, len(languages) + 1)
            dropped[f"descriptions/{language}"] = _descriptions(writer, stages, language, entities)
            dropped[f"mentions/{language}"] = _mentions(writer, stages, language)
        report("write", len(languages), len(languages) + 1)
        dropped["triples"] = write_triples(writer, stages, entities)
        about = writer.finish(dropped=dropped)
    report("write", len(languages) + 1, len(languages) + 1)
    return about


def _descriptions(
    writer: KnowledgeWriter, stages: Stages, language: str, entities: LongArray
) -> dict[str, int]:
    parts = stages.described(language)
    found = Descriptions(parts)
    writer.descriptions(language, found.batches(entities))
    reasons = counts_of(parts)
    assert reasons.pop(KEPT, 0) == len(found.items) + found.repeated, "none is lost"
    return told({**reasons, REPEATED: found.repeated})


def _mentions(writer: KnowledgeWriter, stages: Stages, language: str) -> dict[str, int]:
    parts = stages.mentioning(language)
    config = stages.config
    found = Sentences(parts, heldout_share=config.heldout_share, heldout_seed=config.heldout_seed)
    written = 0

    def counted(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
        nonlocal written
        for batch in batches:
            written += batch.num_rows
            yield batch

    for split in SPLITS:
        writer.sentences(language, split, found.sentences(split))
        writer.mentions(language, split, counted(found.mentions(split)))
    reasons = counts_of(mentions for _, mentions in parts)
    reasons[REPEATED] += reasons.pop(KEPT, 0) - written
    return told(reasons)
