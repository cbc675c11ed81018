"""The generated world's knowledge as a store beside its corpus: what XLM-K's streams read.

Pages stand for Wikipedia's, entities and triples for Wikidata's; every entity is described in every
language. Nothing is dropped but names whose span holds no token.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from isoglot.corpus import Corpus
from isoglot.corpus.heldout import SPLITS
from isoglot.corpus.knowledge.store_about import FILE, FOLDER
from isoglot.corpus.knowledge.store_spans import token_span
from isoglot.corpus.knowledge.store_split import are_held_out
from isoglot.corpus.knowledge.store_writer import MOST_TOKENS, KnowledgeWriter
from isoglot.corpus.tokenizer import Encoder
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.testbed import World

_HELD_OUT = 0.05
_LABELS_IN = "en"


def has_knowledge(folder: Path) -> bool:
    """Has a prepared corpus a store, written with the tokenizer that it has now?"""
    if not (folder / FOLDER / FILE).is_file():
        return False
    try:
        return bool(Corpus.open(folder).knowledge.about.entities)
    except CorpusError:
        return False


def write_knowledge(folder: Path, world: World, languages: tuple[str, ...], pages: int) -> None:
    """Write the store of a prepared corpus, unless it is there.

    Args:
        folder: the corpus's.
        world: whose knowledge.
        languages: in which to describe entities and write pages.
        pages: to draw in each language.
    """
    if has_knowledge(folder):
        return
    corpus = Corpus.open(folder)
    encoder = Encoder(corpus.tokenizer_folder)
    names = world.entity_names(_LABELS_IN)
    numbers = {entity: number for number, entity in enumerate(names)}
    dropped: dict[str, dict[str, int]] = {}
    with KnowledgeWriter(
        folder / FOLDER,
        tokenizer=corpus.manifest.tokenizer.fingerprint,
        settings={"world": world.seed, "pages": pages, "heldout_share": _HELD_OUT},
    ) as writer:
        items = pa.table({"item": np.arange(len(names)), "label": list(names.values())})
        writer.entities([items])
        for language in languages:
            described = sorted(
                (numbers[found.entity], found.text) for found in world.descriptions(language)
            )
            tokens = [ids[:MOST_TOKENS] for ids in _ids(encoder, [text for _, text in described])]
            writer.descriptions(
                language, [pa.table({"entity": [n for n, _ in described], "tokens": tokens})]
            )
            lost = _write_pages(writer, world, language, pages, encoder, numbers)
            dropped[f"mentions/{language}"] = {"no token": lost}
        _write_triples(writer, world, numbers)
        writer.finish(dropped=dropped)


def _write_pages(
    writer: KnowledgeWriter,
    world: World,
    language: str,
    number: int,
    encoder: Encoder,
    numbers: dict[str, int],
) -> int:
    """The sentences and mentions of both splits; gives how many mentions were lost."""
    held_out = are_held_out(np.arange(number), share=_HELD_OUT)
    found = {split: _Pages() for split in SPLITS}
    for page, sentences in enumerate(world.pages(language, number)):
        table = found["heldout" if held_out[page] else "train"]
        encoded = encoder.encode_with_offsets([sentence.text for sentence in sentences])
        for sentence, (ids, offsets) in zip(sentences, encoded, strict=True):
            spans = [
                (token_span(offsets, mention.start, mention.end), numbers[mention.entity])
                for mention in sentence.mentions
            ]
            table.add(page, ids, spans)
    for split, table in found.items():
        writer.sentences(language, split, [table.sentences()])
        writer.mentions(language, split, [table.mentions()])
    return sum(table.lost for table in found.values())


class _Pages:
    """The rows of sentences and mentions of one split."""

    def __init__(self) -> None:
        self._pages: list[int] = []
        self._tokens: list[list[int]] = []
        self._mentions: list[tuple[int, int, int, int]] = []
        self.lost = 0

    def add(
        self, page: int, ids: list[int], spans: list[tuple[tuple[int, int] | None, int]]
    ) -> None:
        """One sentence with its names."""
        for span, entity in spans:
            if span is None:
                self.lost += 1
            else:
                self._mentions.append((len(self._tokens), *span, entity))
        self._pages.append(page)
        self._tokens.append(ids)

    def sentences(self) -> pa.Table:
        """As the store wants them."""
        return pa.table({"page": self._pages, "tokens": self._tokens})

    def mentions(self) -> pa.Table:
        """As the store wants them: sorted by sentence and start."""
        columns: Any = zip(*sorted(self._mentions), strict=True)
        names = ("sentence", "start", "end", "entity")
        return pa.table(dict(zip(names, map(list, columns), strict=True)))


def _write_triples(writer: KnowledgeWriter, world: World, numbers: dict[str, int]) -> None:
    triples = world.triples()
    relations = Counter(triple.relation for triple in triples)
    order = {relation: number for number, relation in enumerate(relations)}
    writer.relations(
        [
            pa.table(
                {
                    "relation": list(order.values()),
                    "label": list(relations),
                    "count": list(relations.values()),
                }
            )
        ]
    )
    rows = np.array(
        sorted((numbers[t.subject], order[t.relation], numbers[t.object]) for t in triples)
    )
    held_out = are_held_out(*rows.T, share=_HELD_OUT)
    for split, chosen in zip(SPLITS, (~held_out, held_out), strict=True):
        names = ("subject", "relation", "object")
        writer.triples(split, [pa.table(dict(zip(names, rows[chosen].T, strict=True)))])


def _ids(encoder: Encoder, texts: list[str]) -> list[list[int]]:
    return [ids for ids, _ in encoder.encode_with_offsets(texts)]
