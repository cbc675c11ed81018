"""Extracts a slice of a Wikidata dump (`latest-all.json`, one JSON object a line) into tables.

Writes items with labels and aliases, sitelinks, claims and properties. A claim is kept if its value
is an item and it is not deprecated; statements without a value (`somevalue`, `novalue`) and values
of other types (dates, texts, properties) are counted. Items without an article in a wanted language
are most of a dump; their lines are skipped without parsing.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from isoglot import json_text
from isoglot.corpus.knowledge.dump_files import FileSlice
from isoglot.corpus.knowledge.dump_records import BrokenRecord, Records, too_long_record
from isoglot.corpus.knowledge.extract_tables import Faults, ParquetTable
from isoglot.languages import bcp47, from_wikipedia, wikipedia_database

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_NAMES = pa.list_(pa.struct([("language", pa.string()), ("text", pa.string())]))
TABLES = {
    "items": pa.schema([("item", pa.int64()), ("labels", _NAMES), ("aliases", _NAMES)]),
    "sitelinks": pa.schema(
        [("item", pa.int64()), ("language", pa.string()), ("title", pa.string())]
    ),
    "claims": pa.schema(
        [("subject", pa.int64()), ("relation", pa.int32()), ("object", pa.int64())]
    ),
    "properties": pa.schema([("relation", pa.int32()), ("labels", _NAMES)]),
}
"""Table -> schema."""
_KEPT = "kept"
_MAX_ITEM, _MAX_RELATION = 2**63 - 1, 2**31 - 1
"""The largest numbers that the tables hold."""
_SITELINKS = b'"sitelinks":'


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitiesTask:
    """A slice of a dump and the paths of its tables."""

    part: FileSlice
    languages: tuple[str, ...]
    keep_all_items: bool
    """Are items without an article in a wanted language kept too?"""
    tables: dict[str, Path]
    """Table -> its file."""


def extract_entities(task: EntitiesTask) -> dict[str, Any]:
    """Writes the tables of a slice; gives the counts of its lines and statements."""
    wikis = {wikipedia_database(language): language for language in task.languages}
    reader = EntityReader(task.part, () if task.keep_all_items else wikis)
    faults = Faults()
    counts: Counter[str] = Counter()
    statements: Counter[str] = Counter()
    with ExitStack() as stack:
        tables = {
            name: stack.enter_context(ParquetTable(task.tables[name], schema))
            for name, schema in TABLES.items()
        }
        for entity in reader:
            counts["lines"] += 1
            if isinstance(entity, BrokenRecord):
                counts["lines too long" if entity.too_long else "bad lines"] += 1
                faults.add(entity.offset, entity.fault)
            elif entity is None:
                counts["items without an article"] += 1
            else:
                try:
                    counts[_add(entity, task, wikis, tables, statements)] += 1
                except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
                    counts["bad lines"] += 1
                    fault = f"{entity.id[:40]} is not as an entity should be: {error!r:.200}"
                    faults.add(entity.offset, fault)
    kept = statements.pop(_KEPT, 0)
    return {
        **counts,
        "sitelinks": tables["sitelinks"].rows,
        "statements": statements.total() + kept,
        "claims kept": kept,
        "claims dropped": dict(sorted(statements.items())),
        "truncated": reader.truncated,
        "faults": faults.first,
    }


@dataclass(frozen=True, slots=True)
class Entity:
    """An item, a property or another object with an id."""

    offset: int
    """Decompressed bytes from the start of the slice to its line."""
    id: str
    content: dict[str, Any]


class EntityReader:
    """Iterates over the lines of a slice, once; then `truncated` is True if the dump is cut off.

    An item without an article in a wanted language is given as None.
    """

    def __init__(self, part: FileSlice, wikis: Collection[str]) -> None:
        """`wikis` are the database names of the wanted Wikipedias; empty: all items are wanted."""
        self._is_last = part.end is None
        self._records = Records(part, b"\n", b"\n", preceding=b"\n")
        names = b"|".join(re.escape(wiki.encode()) for wiki in sorted(wikis))
        self._wanted = re.compile(rb'"(?:%s)"\s*:' % names) if wikis else None
        self.truncated = False

    def __iter__(self) -> Iterator[Entity | BrokenRecord | None]:
        """The entities, in order."""
        closed = False
        for record in self._records:
            if record.too_long:
                yield too_long_record(record)
                continue
            line = record.data.strip(b" \t\r\n,")
            if not line or line in (b"[", b"]"):
                closed = closed or line == b"]"
                continue
            if not (line.startswith(b"{") and line.endswith(b"}")):
                yield BrokenRecord(record.offset + 1, "it is not a JSON object")
                continue
            if self._wanted is not None and line.startswith(b'{"type":"item"'):
                start = line.rfind(_SITELINKS)
                if start >= 0 and self._wanted.search(line, start) is None:
                    yield None
                    continue
            yield _entity(line, record.offset + 1)
        self.truncated = self._is_last and not closed


def _entity(line: bytes, offset: int) -> Entity | BrokenRecord:
    try:
        content = json_text.parse(line)
    except ValueError as error:
        return BrokenRecord(offset, str(error))
    name = content.get("id")
    if not isinstance(name, str) or not (name.isascii() and name[1:].isdigit()):
        return BrokenRecord(offset, "it has no id")
    return Entity(offset, name, content)


def _add(
    entity: Entity,
    task: EntitiesTask,
    wikis: dict[str, str],
    tables: dict[str, ParquetTable],
    statements: Counter[str],
) -> str:
    """Adds the rows of one entity; gives the name it is counted under."""
    number = _number(entity.id[1:], _MAX_RELATION if entity.id[0] == "P" else _MAX_ITEM)
    if entity.id[0] == "P":
        tables["properties"].add((number, _labels(entity.content, task.languages)))
        return "properties"
    if entity.id[0] != "Q":
        return "other entities"
    # all of an item is read before any of it is written: it may be broken
    content, counts = entity.content, Counter[str]()
    labels = _labels(content, task.languages)
    aliases = _mapping(content, "aliases")
    names = [
        (code, _text(x["value"]))
        for code in task.languages
        for name in label_codes(code)
        for x in aliases.get(name, ())
    ]
    links = _mapping(content, "sitelinks")
    titles = [
        (wikis[wiki], _text(links[wiki]["title"]).replace("_", " "))
        for wiki in wikis
        if wiki in links
    ]
    claims = list(_claims(content, counts))
    if not titles and not task.keep_all_items:
        return "items without an article"
    tables["items"].add((number, labels, names))
    tables["sitelinks"].extend((number, language, title) for language, title in titles)
    tables["claims"].extend((number, *claim) for claim in claims)
    statements.update(counts)
    return "items"


def _labels(entity: dict[str, Any], languages: tuple[str, ...]) -> list[tuple[str, str]]:
    labels = _mapping(entity, "labels")
    names = (
        (code, next((x for x in label_codes(code) if x in labels), None)) for code in languages
    )
    return [(code, _text(labels[name]["value"])) for code, name in names if name is not None]


@cache
def label_codes(language: str) -> tuple[str, ...]:
    """Wikidata's codes for texts in a language; Norwegian's Wikipedia is `no`, its labels `nb`."""
    tag = bcp47(from_wikipedia(language)).lower()
    return ("nb", "no") if tag == "no" else (tag,)


def _claims(entity: dict[str, Any], counts: Counter[str]) -> Iterator[tuple[int, int]]:
    """(relation, object) of every claim that is kept; all statements are counted."""
    for relation, statements in _mapping(entity, "claims").items():
        for statement in statements:
            reason, value = _judge(statement)
            counts[reason] += 1
            if value is not None:
                yield _number(relation[1:], _MAX_RELATION), value


def _judge(statement: dict[str, Any]) -> tuple[str, int | None]:
    """`kept` and the item that is the value, or the drop reason and None."""
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
    return _KEPT, _number(value["id"][1:] if number is None else number, _MAX_ITEM)


def _number(value: Any, largest: int) -> int:
    """The number of an entity; a `ValueError` if it is none that the tables hold."""
    number = int(value)
    if isinstance(value, float) or not 0 <= number <= largest:
        raise ValueError(f"the number of an entity is not from 0 to {largest}")
    return number


def _text(value: Any) -> str:
    """A text that the tables hold: JSON escapes may be half characters, which are none."""
    if not isinstance(value, str):
        raise TypeError("a name is not text")
    value.encode()
    return value


def _mapping(entity: dict[str, Any], name: str) -> dict[str, Any]:
    """A part of an entity; dumps write an empty one as a list."""
    found = entity.get(name) or {}
    return found if isinstance(found, dict) else {}
