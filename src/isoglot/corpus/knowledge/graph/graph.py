"""A knowledge graph in memory: names of entities in several languages, and facts between them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from isoglot.languages import canonical, is_language

_WIKIDATA_ITEM = re.compile(r"Q[0-9]{1,18}")
_WIKIDATA_RELATION = re.compile(r"P[0-9]{1,9}")
_OTHER_ITEMS = 1 << 62
_OTHER_RELATIONS = 1_000_000_000
_MAX_CODE_CHARS = 3
MAX_NAME_CHARS = 500
"""Longest name that is read."""


class Fact(NamedTuple):
    """Subject, relation and object, by their ids."""

    subject: str
    relation: str
    object: str


@dataclass(slots=True)
class Graph:
    """One graph, or several that were added up. Entities with the same id are the same."""

    names: dict[str, dict[str, str]] = field(default_factory=dict)
    """Entity -> language -> its name."""
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    """Entity -> language -> a short description, where the graph has one."""
    relations: dict[str, dict[str, str]] = field(default_factory=dict)
    """Relation -> language -> its name."""
    facts: dict[Fact, None] = field(default_factory=dict)
    """All facts, each once, in the order of the files."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Reason -> number of names, texts and facts that are not read."""

    def name(self, entity: str, language: str, name: str, text: str = "") -> None:
        """Adds the name of an entity in a language, and a description of it; the first counts."""
        self._add(self.names, entity, language, name)
        if text:
            self.describe(entity, language, text)

    def describe(self, entity: str, language: str, text: str) -> None:
        """Adds a description of an entity; it is used where the entity has a name."""
        self._add(self.texts, entity, language, text)

    def name_relation(self, relation: str, language: str, name: str) -> None:
        """Adds the name of a relation in a language."""
        self._add(self.relations, relation, language, name)

    def fact(self, subject: str, relation: str, object_: str) -> None:
        """Adds a fact."""
        found = Fact(subject, relation, object_)
        if found in self.facts:
            self.dropped["repeated facts"] += 1
        elif subject == object_:
            self.dropped["facts of an entity with itself"] += 1
        else:
            self.facts[found] = None

    def _add(self, table: dict[str, dict[str, str]], key: str, language: str, name: str) -> None:
        name = " ".join(name.split())
        if not name or len(name) > MAX_NAME_CHARS or not _is_code(language):
            self.dropped["names that are empty, too long or in no language"] += 1
        else:
            table.setdefault(key, {}).setdefault(canonical(language), name)


def _is_code(language: str) -> bool:
    """Whether a column has the code of a language; names of entities look like longer codes."""
    return is_language(language) and len(re.split("[-_]", language)[0]) <= _MAX_CODE_CHARS


def item_number(entity: str) -> int:
    """The number of an entity in tables: Wikidata's own, or 62 bits of a hash of its id."""
    if _WIKIDATA_ITEM.fullmatch(entity):
        return int(entity[1:])
    digest = blake2b(entity.encode(), digest_size=8).digest()
    return _OTHER_ITEMS | (int.from_bytes(digest, "little") >> 2)


def relation_numbers(graph: Graph) -> dict[str, int]:
    """Relation -> its number in tables: Wikidata's own, or one from 10⁹ on, in sorted order."""
    named = sorted({fact.relation for fact in graph.facts})
    others = [name for name in named if not _WIKIDATA_RELATION.fullmatch(name)]
    numbers = {name: int(name[1:]) for name in named if _WIKIDATA_RELATION.fullmatch(name)}
    return numbers | {name: _OTHER_RELATIONS + place for place, name in enumerate(others)}
