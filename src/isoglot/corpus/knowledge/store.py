"""The knowledge store of a corpus, opened: entities, descriptions, mentions and triples (XLM-K).

The folder `knowledge` of a prepared corpus, written by `KnowledgeWriter`: shards (memory-mapped,
addressed by row) and knowledge.json, written last. The fingerprint covers all files and the
tokenizer.

    entities.arrow              item, label                  an entity's number is its row
    descriptions/{language}     entity, tokens
    sentences/{language}/{split}   page, tokens              in the order of the page
    mentions/{language}/{split}    sentence, start, end, entity
    triples/{split}             subject, relation, object
    relations.arrow             relation, label, count       a relation's number is its row
    described.arrow             language, row, length        the descriptions of each entity
    described_first.arrow       first                        the first row of each entity there
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from isoglot.corpus.storage.manifest import check_fingerprint, load_manifest, verify_files
from isoglot.corpus.storage.shards import SPLITS, Shard, ShardEntry, Split
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from isoglot.corpus.storage.manifest import Verify
    from isoglot.types import IntArray, LongArray

FOLDER = "knowledge"
"""Folder of the store in a corpus."""
MANIFEST = "knowledge.json"
FORMAT = 3
LINK_AGAIN = "Run isoglot knowledge link again."


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageCounts:
    """The content of a store in one language."""

    descriptions: int
    description_tokens: int
    sentences: dict[Split, int]
    sentence_tokens: dict[Split, int]
    mentions: dict[Split, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeManifest:
    """All of knowledge.json."""

    format: int = FORMAT
    isoglot: str
    """The version of Isoglot that wrote the store."""
    fingerprint: str
    tokenizer: str
    """Fingerprint of the corpus's tokenizer."""
    languages: tuple[str, ...]
    """Sorted; a language's number in the store is its index here."""
    entities: int
    relations: int
    triples: dict[Split, int]
    counts: dict[str, LanguageCounts]
    """Language -> its content."""
    dropped: dict[str, dict[str, int]]
    """`mentions/en`, `descriptions/en`, `triples` -> reason -> number."""
    settings: dict[str, Any]
    files: tuple[ShardEntry, ...]


class Knowledge:
    """A store. Cheap to pickle: it travels as its path and opens again lazily."""

    def __init__(self, folder: Path, manifest: KnowledgeManifest) -> None:
        """Use `Knowledge.open`."""
        self.folder, self.manifest = folder, manifest

    @classmethod
    def open(
        cls, folder: Path | str, *, tokenizer: str | None = None, verify: Verify = "auto"
    ) -> Knowledge:
        """Opens a store and checks that its files are complete.

        A store of another `tokenizer` (fingerprint) is refused. `verify` says whether contents are
        compared: always, never, or up to 2 GiB; sizes are always compared.
        """
        folder = Path(folder)
        path = folder / MANIFEST
        manifest = load_manifest(
            path,
            KnowledgeManifest,
            format_version=FORMAT,
            missing=f"{folder}: holds no knowledge, or linking it was interrupted: it has no "
            f"{MANIFEST}. Run isoglot knowledge link.",
            remedy=LINK_AGAIN,
        )
        check_fingerprint(
            path, manifest.fingerprint, manifest.files, manifest.tokenizer, remedy=LINK_AGAIN
        )
        if tokenizer is not None and tokenizer != manifest.tokenizer:
            raise CorpusError(
                f"{folder}: was written with another tokenizer ({manifest.tokenizer[:12]}) than "
                f"the corpus has now ({tokenizer[:12]}). {LINK_AGAIN}"
            )
        verify_files(folder, manifest.files, verify=verify, remedy=LINK_AGAIN)
        return cls(folder, manifest)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.folder, self.fingerprint)

    @override
    def __repr__(self) -> str:
        return f"Knowledge({str(self.folder)!r})"

    @property
    def fingerprint(self) -> str:
        """Equal for stores that give the same batches, and for no others."""
        return self.manifest.fingerprint

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages, sorted; a language's number in the store is its index."""
        return self.manifest.languages

    @cached_property
    def entities(self) -> Shard:
        """`item` (int64, ascending) and `label`."""
        return self._shards["entities.arrow"]

    @cached_property
    def relations(self) -> Shard:
        """`relation` (its P number), `label` and `count`."""
        return self._shards["relations.arrow"]

    def descriptions(self, language: str) -> Descriptions:
        """All descriptions in a language."""
        return Descriptions(self._of_language("descriptions/{}.arrow", language))

    def sentences(self, language: str, split: Split) -> Shard:
        """Sentences in the order of their pages: `page` (ascending) and `tokens`."""
        return self._of_language(f"sentences/{{}}/{split}.arrow", language)

    def mentions(self, language: str, split: Split) -> Shard:
        """Token spans: `sentence` (a row of `sentences`), `start`, `end`, `entity`."""
        return self._of_language(f"mentions/{{}}/{split}.arrow", language)

    def triples(self, split: Split) -> Shard:
        """Triples: `subject`, `relation`, `object`, ascending."""
        return self._shards[f"triples/{split}.arrow"]

    @cached_property
    def described(self) -> DescriptionIndex:
        """The descriptions of each entity."""
        first, where = (self._shards[f"{name}.arrow"] for name in ("described_first", "described"))
        return DescriptionIndex(first, where)

    def languages_of(self, entity: int) -> tuple[str, ...]:
        """The languages in which an entity has a description."""
        begin, end = self.described.first["first"][entity : entity + 2]
        numbers = self.described.where["language"][begin:end].tolist()
        return tuple(self.languages[number] for number in numbers)

    def objects(self, subject: int, relation: int) -> IntArray:
        """All objects of a subject and a relation, held out or not, ascending."""
        found = []
        for triples in map(self.triples, SPLITS):
            low, high = row_range(triples["subject"], subject, subject + 1)
            first, last = row_range(triples["relation"][low:high], relation, relation + 1)
            found.append(triples["object"][low + first : low + last])
        return np.sort(np.concatenate(found))

    def label(self, entity: int) -> str:
        """The label of an entity, for people to read."""
        return self.entities.string("label", entity)

    def _of_language(self, pattern: str, language: str) -> Shard:
        if language not in self.languages:
            hint = nearest(language, self.languages)
            raise CorpusError(f"{self.folder}: has nothing in {language!r}; {hint}")
        return self._shards[pattern.format(language)]

    @cached_property
    def _shards(self) -> dict[str, Shard]:
        """File -> its shard, which is opened when first read."""
        return {
            entry.file: Shard(self.folder / entry.file, entry.rows, LINK_AGAIN)
            for entry in self.manifest.files
        }


class Descriptions:
    """The descriptions in one language, by entity."""

    def __init__(self, table: Shard) -> None:
        self.table = table

    def __getitem__(self, entity: int) -> IntArray | None:
        """The tokens of an entity's description, without special ones; None: it has none."""
        (row,) = self.rows(np.array([entity], np.int32))
        return None if row < 0 else self.table.tokens("tokens", int(row))

    def rows(self, entities: IntArray) -> LongArray:
        """The row of each entity's description, -1 where it has none."""
        known = self.table["entity"]
        places = np.searchsorted(known, entities)
        found = places < len(known)
        found[found] = known[places[found]] == entities[found]
        return np.where(found, places, -1)


class DescriptionIndex:
    """The descriptions of every entity: (language, row, length), languages ascending."""

    def __init__(self, first: Shard, where: Shard) -> None:
        self.first, self.where = first, where

    def __getitem__(self, entities: IntArray) -> tuple[LongArray, LongArray]:
        """(first, number) of the rows of `where` that belong to each entity."""
        first = self.first["first"]
        begin = first[entities]
        return begin, first[entities + 1] - begin


def row_range(ascending: IntArray, low: int, high: int) -> tuple[int, int]:
    """The rows of a sorted column with values of [low, high)."""
    # keys of another type would make numpy copy the whole column
    first, last = np.searchsorted(ascending, np.array([low, high], ascending.dtype))
    return int(first), int(last)


def _reopen(folder: Path, fingerprint: str) -> Knowledge:
    """Opens a pickled store; refuses one that was written again since."""
    knowledge = Knowledge.open(folder, verify="never")
    if knowledge.fingerprint != fingerprint:
        raise CorpusError(f"{folder}: was written anew while it was in use. Start the run again.")
    return knowledge
