"""From a part of a Wikidata dump to tables: items with names, their articles, claims, properties.

A claim is kept if its value is an item and it is not deprecated. Statements without a known value
(`somevalue`, `novalue`) and values of other kinds (dates, texts, properties) are counted.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from isoglot.corpus.knowledge.dumps.entities import BadLine, Entities, Entity, Passed
from isoglot.corpus.knowledge.dumps.unpack import Part
from isoglot.corpus.knowledge.markup.words import DATABASES
from isoglot.corpus.knowledge.tables import Faults, TableWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = pa.list_(pa.struct([("language", pa.string()), ("text", pa.string())]))
ITEMS = pa.schema([("item", pa.int64()), ("labels", NAMES), ("aliases", NAMES)])
SITELINKS = pa.schema([("item", pa.int64()), ("language", pa.string()), ("title", pa.string())])
CLAIMS = pa.schema([("subject", pa.int64()), ("relation", pa.int32()), ("object", pa.int64())])
PROPERTIES = pa.schema([("relation", pa.int32()), ("labels", NAMES)])
TABLES = {
    "items": ITEMS,
    "sitelinks": SITELINKS,
    "claims": CLAIMS,
    "properties": PROPERTIES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitiesTask:
    """One part of a dump, and where its tables go."""

    part: Part
    languages: tuple[str, ...]
    every_item: bool
    """Are items without an article in a wanted language kept too?"""
    tables: dict[str, Path]
    """Table -> its file."""


def database_of(language: str) -> str:
    """What the database of a language's Wikipedia is called."""
    return DATABASES.get(language, language).replace("-", "_") + "wiki"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """The rows of one item."""

    labels: list[tuple[str, str]]
    aliases: list[tuple[str, str]]
    titles: list[tuple[str, str]]
    claims: list[tuple[int, int]]
    fates: Counter[str]
    """What became of its statements."""


def extract_entities(task: EntitiesTask) -> dict[str, Any]:
    """Writes the tables of a part and counts what became of its lines and statements."""
    wikis = {database_of(language): language for language in task.languages}
    reader = Entities(task.part, () if task.every_item else wikis)
    faults = Faults()
    counts: Counter[str] = Counter()
    fates: Counter[str] = Counter()
    with ExitStack() as stack:
        tables = {
            name: stack.enter_context(TableWriter(task.tables[name], schema))
            for name, schema in TABLES.items()
        }
        for entity in reader:
            counts["lines"] += 1
            if isinstance(entity, BadLine):
                counts["bad lines"] += 1
                faults.add(entity.offset, entity.fault)
            elif isinstance(entity, Passed):
                counts["items without an article"] += 1
            else:
                try:
                    counts[_add(entity, task, wikis, tables, fates)] += 1
                except (AttributeError, KeyError, TypeError, ValueError) as error:
                    counts["bad lines"] += 1
                    faults.add(
                        entity.offset, f"{entity.id} is not as an entity should be: {error!r}"
                    )
    kept = fates.pop("kept", 0)
    return {
        **counts,
        "sitelinks": tables["sitelinks"].rows,
        "statements": fates.total() + kept,
        "claims kept": kept,
        "claims dropped": dict(sorted(fates.items())),
        "cut short": reader.cut_short,
        "faults": faults.told,
    }


def _add(
    entity: Entity,
    task: EntitiesTask,
    wikis: dict[str, str],
    tables: dict[str, TableWriter],
    fates: Counter[str],
) -> str:
    """Adds the rows of one entity; says as what it is counted."""
    number = int(entity.id[1:])
    if entity.id[0] == "P":
        tables["properties"].add((number, list(_labels(entity.content, task.languages))))
        return "properties"
    if entity.id[0] != "Q":
        return "other entities"
    item = _read(entity.content, task.languages, wikis)
    if not item.titles and not task.every_item:
        return "items without an article"
    tables["items"].add((number, item.labels, item.aliases))
    tables["sitelinks"].extend((number, language, title) for language, title in item.titles)
    tables["claims"].extend((number, *claim) for claim in item.claims)
    fates.update(item.fates)
    return "items"


def _read(content: dict[str, Any], languages: tuple[str, ...], wikis: dict[str, str]) -> _Item:
    """All of an item that is wanted, read before any of it is written."""
    fates: Counter[str] = Counter()
    return _Item(
        labels=list(_labels(content, languages)),
        aliases=list(_aliases(content, languages)),
        titles=list(_titles(content, wikis)),
        claims=list(_claims(content, fates)),
        fates=fates,
    )


def _labels(entity: dict[str, Any], languages: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    labels = _table(entity, "labels")
    for language in languages:
        if language in labels:
            yield language, labels[language]["value"]


def _aliases(entity: dict[str, Any], languages: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    aliases = _table(entity, "aliases")
    for language in languages:
        for alias in aliases.get(language, ()):
            yield language, alias["value"]


def _titles(entity: dict[str, Any], wikis: dict[str, str]) -> Iterator[tuple[str, str]]:
    links = _table(entity, "sitelinks")
    for wiki, language in wikis.items():
        if wiki in links:
            yield language, links[wiki]["title"].replace("_", " ")


def _claims(entity: dict[str, Any], counts: Counter[str]) -> Iterator[tuple[int, int]]:
    """(relation, object) of every claim that is kept; all are counted."""
    for relation, statements in _table(entity, "claims").items():
        for statement in statements:
            fate, value = _judge(statement)
            counts[fate] += 1
            if value is not None:
                yield int(relation[1:]), value


def _judge(statement: dict[str, Any]) -> tuple[str, int | None]:
    """What becomes of a statement, and the item it names if it is kept."""
    if statement.get("rank") == "deprecated":
        return "deprecated", None
    snak = statement["mainsnak"]
    if snak["snaktype"] != "value":
        return snak["snaktype"], None
    value = snak["datavalue"]["value"]
    if snak["datavalue"]["type"] != "wikibase-entityid" or value.get("entity-type") != "item":
        return "not an item", None
    # old dumps give the number, new ones the id, most both
    number = value.get("numeric-id")
    return "kept", int(value["id"][1:]) if number is None else int(number)


def _table(entity: dict[str, Any], name: str) -> dict[str, Any]:
    """A part of an entity; an empty one is written as a list."""
    found = entity.get(name) or {}
    return found if isinstance(found, dict) else {}
