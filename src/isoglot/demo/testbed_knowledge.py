"""The generated world's knowledge as a store beside its corpus, for XLM-K's streams.

Generated pages replace Wikipedia's, entities and triples Wikidata's; every entity has a description
in every language. Only mentions without a token of their own are dropped.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from isoglot.corpus import Corpus
from isoglot.corpus.knowledge.link.joins import NO_TOKENS, SHARED
from isoglot.corpus.knowledge.link.tokenize import token_span
from isoglot.corpus.knowledge.store import FOLDER, MANIFEST
from isoglot.corpus.knowledge.store_writer import (
    MAX_DESCRIPTION_TOKENS,
    KnowledgeWriter,
    are_held_out,
)
from isoglot.corpus.storage.shards import SPLITS
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.testbed import World

_HELDOUT_SHARE = 0.05
_LABEL_LANGUAGE = "en"


def has_knowledge(folder: Path) -> bool:
    """Whether a prepared corpus has a store that was written with its current tokenizer."""
    if not (folder / FOLDER / MANIFEST).is_file():
        return False
    try:
        return bool(Corpus.open(folder).knowledge.manifest.entities)
    except CorpusError:
        return False


def write_knowledge(folder: Path, world: World, languages: tuple[str, ...], num_pages: int) -> None:
    """Write the knowledge store of a prepared corpus, unless it exists.

    Args:
        folder: of the corpus.
        world: whose entities, facts and pages are written.
        languages: of descriptions and pages.
        num_pages: per language.
    """
    if has_knowledge(folder):
        return
    corpus = Corpus.open(folder)
    encoder = HFEncoder(corpus.tokenizer_folder)
    names = world.entity_names(_LABEL_LANGUAGE)
    numbers = {entity: number for number, entity in enumerate(names)}
    dropped: dict[str, dict[str, int]] = {}
    writer = KnowledgeWriter(
        folder / FOLDER,
        tokenizer=corpus.manifest.tokenizer.fingerprint,
        settings={"world": world.seed, "pages": num_pages, "heldout_share": _HELDOUT_SHARE},
    )
    writer.entities(_table(item=np.arange(len(names)), label=list(names.values())))
    for language in languages:
        texts = sorted((numbers[row.entity], row.text) for row in world.descriptions(language))
        encoded = encoder.encode_with_offsets([text for _, text in texts])
        tokens = [ids[:MAX_DESCRIPTION_TOKENS] for ids, _ in encoded]
        writer.descriptions(language, _table(entity=[n for n, _ in texts], tokens=tokens))
        lost = _write_pages(writer, world, language, num_pages, encoder, numbers)
        dropped[f"mentions/{language}"] = dict(lost)
    _write_triples(writer, world, numbers)
    writer.finish(dropped=dropped)


def _table(**columns: Any) -> list[pa.Table]:
    return [pa.table(columns)]


class _Pages:
    """The rows of sentences and mentions of one split."""

    def __init__(self) -> None:
        self.pages: list[int] = []
        self.tokens: list[list[int]] = []
        self.mentions: list[tuple[int, int, int, int]] = []
        """Sentence, first token, token after the last, entity."""


def _write_pages(
    writer: KnowledgeWriter,
    world: World,
    language: str,
    num_pages: int,
    encoder: HFEncoder,
    numbers: dict[str, int],
) -> Counter[str]:
    """Write the sentences and mentions of both splits; gives the mentions lost, by reason.

    As in linking, a mention that shares a token with the one before it is lost.
    """
    held_out = are_held_out(np.arange(num_pages), share=_HELDOUT_SHARE)
    splits = {split: _Pages() for split in SPLITS}
    lost = Counter({NO_TOKENS: 0, SHARED: 0})
    for page, sentences in enumerate(world.pages(language, num_pages)):
        rows = splits["heldout" if held_out[page] else "train"]
        encoded = encoder.encode_with_offsets([sentence.text for sentence in sentences])
        for sentence, (ids, offsets) in zip(sentences, encoded, strict=True):
            taken = 0
            for mention in sorted(sentence.mentions, key=lambda one: one.start):
                span = token_span(offsets, mention.start, mention.end)
                if span is None:
                    lost[NO_TOKENS] += 1
                elif span[0] < taken:
                    lost[SHARED] += 1
                else:
                    taken = span[1]
                    rows.mentions.append((len(rows.tokens), *span, numbers[mention.entity]))
            rows.pages.append(page)
            rows.tokens.append(ids)
    for split, rows in splits.items():
        writer.sentences(language, split, _table(page=rows.pages, tokens=rows.tokens))
        columns = map(list, zip(*sorted(rows.mentions), strict=True))
        names = ("sentence", "start", "end", "entity")
        writer.mentions(language, split, _table(**dict(zip(names, columns, strict=True))))
    return lost


def _write_triples(writer: KnowledgeWriter, world: World, numbers: dict[str, int]) -> None:
    triples = world.triples()
    counts = Counter(triple.relation for triple in triples)
    order = {relation: number for number, relation in enumerate(counts)}
    writer.relations(
        _table(relation=list(order.values()), label=list(counts), count=list(counts.values()))
    )
    rows = np.array(
        sorted((numbers[t.subject], order[t.relation], numbers[t.object]) for t in triples)
    )
    held_out = are_held_out(*rows.T, share=_HELDOUT_SHARE)
    for split, chosen in zip(SPLITS, (~held_out, held_out), strict=True):
        subject, relation, object_ = rows[chosen].T
        writer.triples(split, _table(subject=subject, relation=relation, object=object_))
