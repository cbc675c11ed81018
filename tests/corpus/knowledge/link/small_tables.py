"""Tables as `isoglot knowledge extract` writes them, made by hand; and what joins must find."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from isoglot.corpus.knowledge.wikipedia import PAGES, SENTENCES

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXTS = pa.list_(pa.struct([("language", pa.string()), ("text", pa.string())]))
ITEMS = pa.schema([("item", pa.int64()), ("labels", TEXTS), ("aliases", TEXTS)])
SITELINKS = pa.schema([("item", pa.int64()), ("language", pa.string()), ("title", pa.string())])
CLAIMS = pa.schema([("subject", pa.int64()), ("relation", pa.int32()), ("object", pa.int64())])


@dataclass
class Page:
    id: int
    title: str
    lead: str | None = "It is something."
    opening: str | None = None
    """The lead and what follows; none: there is nothing behind the lead."""
    redirect: str | None = None
    kind: str = ""
    sentences: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)
    """(text, [(anchor text, target)]); an anchor is where its text first is, after the last."""

    def row(self) -> tuple[Any, ...]:
        kind = self.kind or ("redirect" if self.redirect else "article")
        return self.id, self.title, self.redirect, kind, self.opening or self.lead, self.lead

    def rows(self) -> list[tuple[Any, ...]]:
        found = []
        for index, (text, links) in enumerate(self.sentences):
            at, placed = 0, []
            for anchor, target in links:
                start = text.index(anchor, at)
                at = start + len(anchor)
                placed.append({"start": start, "end": at, "target": target})
            found.append((self.id, index, text, placed))
        return found


def write_tables(
    folder: Path,
    pages: dict[str, list[Page]],
    *,
    sitelinks: list[tuple[int, str, str]],
    claims: Sequence[tuple[int, ...]] = (),
    labels: dict[int, str] | None = None,
    shards: int = 1,
) -> Path:
    """A folder of tables; rows are dealt to the shards in turn, pages as a whole."""
    for language, some in pages.items():
        place = folder / "wikipedia" / language
        for shard in range(shards):
            ours = some[shard::shards]
            _write(place, "pages", shard, PAGES, [page.row() for page in ours])
            rows = [row for page in ours for row in page.rows()]
            _write(place, "sentences", shard, SENTENCES, rows)
    items: list[tuple[Any, ...]] = [
        (item, [{"language": "en", "text": text}] if text else [], [])
        for item, text in (labels or {}).items()
    ]
    wikidata: dict[str, tuple[pa.Schema, Sequence[tuple[Any, ...]]]] = {
        "items": (ITEMS, items),
        "sitelinks": (SITELINKS, sitelinks),
        "claims": (CLAIMS, claims),
    }
    for name, (schema, facts) in wikidata.items():
        for shard in range(shards):
            _write(folder / "wikidata", name, shard, schema, facts[shard::shards])
    (folder / "counts.json").write_text("{}")
    return folder


def _write(folder: Path, name: str, shard: int, schema: pa.Schema, rows: Sequence[Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    pq.write_table(table, folder / f"{name}-{shard:05d}.parquet", compression="zstd")


def naive_titles(
    pages: list[tuple[str, str, str | None]],
    sitelinks: list[tuple[str, int]],
    disambiguations: set[int],
    hops: int,
) -> dict[str, tuple[int | None, str]]:
    """Title -> item and status, by dictionaries; pages are title, kind, target of a redirect."""
    # of two with the same title, the smaller wins: the one that is written last here
    kinds = {title: kind for kind, title in sorted(((k, t) for t, k, _ in pages), reverse=True)}
    redirects = ((target, title) for title, _, target in pages if target is not None)
    targets = {title: target for target, title in sorted(redirects, reverse=True)}
    items = {t: item for item, t in sorted(((i, t) for t, i in sitelinks), reverse=True)}

    def place(title: str) -> tuple[int | None, str]:
        kind, item = kinds.get(title), items.get(title)
        if kind == "redirect":
            return None, "redirect loop"
        if kind is None and item is None:
            return None, "red link"
        if kind == "disambiguation" or item in disambiguations:
            return None, "disambiguation page"
        return (item, "kept") if item is not None else (None, "no sitelink")

    found = {}
    for title in {*kinds, *items}:
        end = title
        for _ in range(hops):
            if kinds.get(end) == "redirect":
                end = targets[end]
        found[title] = place(end)
    return found
