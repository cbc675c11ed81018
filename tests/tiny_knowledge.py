"""A small store of knowledge beside the tiny corpus: entities, descriptions, pages, triples."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa

from isoglot.corpus import Corpus
from isoglot.corpus.knowledge.store import FOLDER
from isoglot.corpus.knowledge.store_writer import KnowledgeWriter
from isoglot.corpus.storage.shards import SPLITS
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from tests.tiny_corpus import LANGUAGES, words

ENTITIES = 12
DESCRIBED = {
    "aa": tuple(range(11)),
    "bb": tuple(range(0, 11, 2)),
    "cc": (1, 2, 3, 4, 10),
}
"""Entity 11 has no description at all, 5, 7 and 9 one in aa alone."""
RELATIONS = 3


def with_knowledge(corpus: Corpus, folder: Path, *, seed: int = 0, pages: int = 40) -> Corpus:
    """A copy of a corpus that has knowledge."""
    shutil.copytree(corpus.folder, folder)
    write_store(Corpus.open(folder), seed=seed, pages=pages)
    return Corpus.open(folder)


def write_store(corpus: Corpus, *, seed: int = 0, pages: int = 40) -> None:
    rng = np.random.default_rng(seed)
    encoder = HFEncoder(corpus.tokenizer_folder)

    def tokens(language: str, number: int) -> list[int]:
        said = " ".join(rng.choice(words(language), number))
        ids, _ = encoder.encode([said])
        return ids.tolist()

    writer = KnowledgeWriter(
        corpus.folder / FOLDER,
        tokenizer=corpus.manifest.tokenizer.fingerprint,
        settings={"seed": seed},
    )
    items = [3 * number + 1 for number in range(ENTITIES)]
    writer.entities([pa.table({"item": items, "label": [f"Q{i}" for i in items]})])
    for language in LANGUAGES:
        described = DESCRIBED[language]
        texts = [tokens(language, 4 + number) for number in range(len(described))]
        writer.descriptions(language, [pa.table({"entity": described, "tokens": texts})])
        for split in SPLITS:
            _write_pages(writer, language, split, pages if split == "train" else 6, rng, tokens)
    writer.relations(
        [pa.table({"relation": [5, 7, 9], "label": ["in", "of", "by"], "count": [9, 9, 9]})]
    )
    triples = sorted({tuple(map(int, rng.integers(0, (11, RELATIONS, 11)))) for _ in range(90)})
    for split, some in zip(SPLITS, (triples[::2] + triples[1::4], triples[3::4]), strict=True):
        columns = zip(*sorted(some), strict=True)
        names = ("subject", "relation", "object")
        table = pa.table(dict(zip(names, map(list, columns), strict=True)))
        writer.triples(split, [table])
    writer.finish(dropped={"mentions/aa": {"red link": 2}})


def _write_pages(writer, language, split, pages, rng, tokens) -> None:
    page_of: list[int] = []
    texts: list[list[int]] = []
    mentions: list[tuple[int, int, int, int]] = []
    for page in range(pages):
        for _ in range(int(rng.integers(1, 5))):
            ids = tokens(language, int(rng.integers(2, 9)))
            start = int(rng.integers(0, len(ids)))
            end = int(rng.integers(start + 1, min(start + 4, len(ids)) + 1))
            mentions.append((len(texts), start, end, int(rng.integers(0, ENTITIES))))
            page_of.append(10 * page)
            texts.append(ids)
    writer.sentences(language, split, [pa.table({"page": page_of, "tokens": texts})])
    names = ("sentence", "start", "end", "entity")
    columns = dict(zip(names, map(list, zip(*mentions, strict=True)), strict=True))
    writer.mentions(language, split, [pa.table(columns)])
