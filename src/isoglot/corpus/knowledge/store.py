"""The knowledge of a corpus, opened: entities, their descriptions, mentions and triples.

Reads the folder `knowledge` of a prepared corpus (written by `KnowledgeWriter`); everything is
mapped and addressed by row, thousands of rows at a time.

    entities.arrow              item, label                  an entity's number is its row
    descriptions/{language}     entity, tokens
    sentences/{language}/{split}   page, tokens              in the order of the page
    mentions/{language}/{split}    sentence, start, end, entity
    triples/{split}             subject, relation, object
    relations.arrow             relation, label, count       a relation's number is its row
    described.arrow             language, row, length        entity after entity: where each is
    described_first.arrow       first                        described; where an entity's rows begin
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from typing_extensions import override

from isoglot.corpus.knowledge.store_about import read_about, verify_files
from isoglot.corpus.knowledge.store_files import AGAIN, Mapped, between
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from isoglot.corpus.heldout import Split
    from isoglot.corpus.knowledge.store_about import About
    from isoglot.types import IntArray, LongArray

_AUTO_HASH_BYTES = 2 * 2**30


class Knowledge:
    """A store. Cheap to pickle: it travels as its path and opens again lazily."""

    def __init__(self, folder: Path, about: About) -> None:
        """Use `Knowledge.open`."""
        self.folder, self.about = folder, about

    @classmethod
    def open(
        cls,
        folder: Path | str,
        *,
        tokenizer: str | None = None,
        verify: Literal["auto", "always", "never"] = "auto",
    ) -> Knowledge:
        """Opens a store and checks that its files are all there, whole.

        Args:
            folder: `knowledge` inside a prepared corpus.
            tokenizer: the corpus's fingerprint of its tokenizer; another is refused.
            verify: compare contents always, never, or up to 2 GiB; sizes are always compared.
        """
        folder = Path(folder)
        about = read_about(folder)
        if tokenizer is not None and tokenizer != about.tokenizer:
            raise CorpusError(
                f"{folder}: was written with another tokenizer ({about.tokenizer[:12]}) than the "
                f"corpus has now ({tokenizer[:12]}). {AGAIN}"
            )
        size = sum(entry.bytes for entry in about.files)
        hashes = verify == "always" or (verify == "auto" and size <= _AUTO_HASH_BYTES)
        verify_files(folder, about, hashes=hashes)
        return cls(folder, about)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.folder, self.fingerprint)

    @override
    def __repr__(self) -> str:
        return f"Knowledge({str(self.folder)!r})"

    @property
    def fingerprint(self) -> str:
        """Equal for stores that give the same batches, and for no others."""
        return self.about.fingerprint

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages, sorted; a language's number in the store is its index."""
        return self.about.languages

    @cached_property
    def entities(self) -> Mapped:
        """Their items (int64, ascending) and labels."""
        return self._table("entities.arrow")

    @cached_property
    def relations(self) -> Mapped:
        """Their P numbers (`relation`), labels and counts."""
        return self._table("relations.arrow")

    def descriptions(self, language: str) -> Descriptions:
        """All descriptions in a language."""
        return Descriptions(self._of_language("descriptions/{}.arrow", language))

    def sentences(self, language: str, split: Split) -> Mapped:
        """Sentences in the order of their pages: `page` (ascending) and `tokens`."""
        return self._of_language(f"sentences/{{}}/{split}.arrow", language)

    def mentions(self, language: str, split: Split) -> Mapped:
        """Spans of names: `sentence` (a row of `sentences`), `start`, `end`, `entity`."""
        return self._of_language(f"mentions/{{}}/{split}.arrow", language)

    def triples(self, split: Split) -> Mapped:
        """Statements: `subject`, `relation`, `object`, ascending."""
        return self._table(f"triples/{split}.arrow")

    @cached_property
    def described(self) -> Described:
        """Where each entity is described."""
        return Described(self._table("described_first.arrow"), self._table("described.arrow"))

    def languages_of(self, entity: int) -> tuple[str, ...]:
        """The languages that an entity is described in."""
        return tuple(self.languages[number] for number in self.described.languages_of(entity))

    def objects(self, subject: int, relation: int) -> IntArray:
        """All entities that a relation is known to lead to, held out or not, ascending."""
        splits: tuple[Split, ...] = ("train", "heldout")
        found = [_objects(self.triples(split), subject, relation) for split in splits]
        return np.sort(np.concatenate(found))

    def label(self, entity: int) -> str:
        """What an entity is called, for people to read."""
        return self.entities.string("label", entity)

    def _of_language(self, pattern: str, language: str) -> Mapped:
        if language not in self.languages:
            hint = nearest(language, self.languages)
            raise CorpusError(f"{self.folder}: has nothing in {language!r}; {hint}")
        return self._table(pattern.format(language))

    def _table(self, file: str) -> Mapped:
        if file not in self._opened:
            self._opened[file] = Mapped(self.folder / file, self._rows[file])
        return self._opened[file]

    @cached_property
    def _opened(self) -> dict[str, Mapped]:
        return {}

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {entry.file: entry.rows for entry in self.about.files}


class Descriptions:
    """The descriptions in one language, by entity."""

    def __init__(self, table: Mapped) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, entity: int) -> IntArray | None:
        """The tokens of an entity's description, without special ones; none: it has none here."""
        (row,) = self.rows(np.array([entity], np.int32))
        return None if row < 0 else self.table.tokens("tokens", int(row))

    def rows(self, entities: IntArray) -> LongArray:
        """The row of each entity's description, -1 where it has none here."""
        known = self.table["entity"]
        places = np.searchsorted(known, entities)
        found = places < len(known)
        found[found] = known[places[found]] == entities[found]
        return np.where(found, places, -1)


class Described:
    """For every entity, where it is described: (language, row, length), languages ascending."""

    def __init__(self, first: Mapped, where: Mapped) -> None:
        self.first = first
        self.where = where

    def languages_of(self, entity: int) -> LongArray:
        """The numbers of the languages that an entity is described in."""
        first = self.first["first"]
        return self.where["language"][first[entity] : first[entity + 1]].astype(np.int64)

    def __getitem__(self, entities: IntArray) -> tuple[LongArray, LongArray]:
        """(first, number) of the rows of `where` that belong to each entity."""
        first = self.first["first"]
        begin = first[entities]
        return begin, first[entities + 1] - begin


def _objects(triples: Mapped, subject: int, relation: int) -> IntArray:
    low, high = between(triples["subject"], subject, subject + 1)
    within = between(triples["relation"][low:high], relation, relation + 1)
    found: IntArray = triples["object"][low + within[0] : low + within[1]]
    return found


def _reopen(folder: Path, fingerprint: str) -> Knowledge:
    """A store on the other side of a pickle; it must still be the one that was sent."""
    knowledge = Knowledge.open(folder, verify="never")
    if knowledge.fingerprint != fingerprint:
        raise CorpusError(f"{folder}: was written anew while it was in use. Start the run again.")
    return knowledge
