"""Small dumps written by hand, packed in every way that dumps are distributed."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>{wiki}</dbname>
    <case>{case}</case>
    <namespaces>
      <namespace key="-1" case="first-letter">Special</namespace>
      <namespace key="0" case="first-letter" />
      <namespace key="4" case="first-letter">Wikipedia</namespace>
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="14" case="first-letter">Kategorie</namespace>
      <namespace key="100" case="first-letter">Portal</namespace>
    </namespaces>
  </siteinfo>
"""
CLOSING = "</mediawiki>\n"


def page(number: int, title: str, text: str, *, namespace: int = 0, redirect: str = "") -> str:
    sent = f'    <redirect title="{escape(redirect)}" />\n' if redirect else ""
    return (
        f"  <page>\n    <title>{escape(title)}</title>\n    <ns>{namespace}</ns>\n"
        f"    <id>{number}</id>\n{sent}    <revision>\n      <id>{number + 900}</id>\n"
        f'      <model>wikitext</model>\n      <text xml:space="preserve">{escape(text)}'
        "</text>\n    </revision>\n  </page>\n"
    )


def header(wiki: str = "enwiki", *, version: str = "0.10", case: str = "first-letter") -> str:
    return HEADER.format(wiki=wiki, version=version, case=case)


def write(path: Path, pieces: list[str]) -> Path:
    """Writes pieces, packed as the suffix says; of bz2 and gz each piece is a stream of its own."""
    raw = [piece.encode() for piece in pieces]
    match path.suffix:
        case ".bz2":
            path.write_bytes(b"".join(bz2.compress(piece) for piece in raw))
        case ".gz":
            path.write_bytes(b"".join(gzip.compress(piece) for piece in raw))
        case ".xz":
            path.write_bytes(lzma.compress(b"".join(raw)))
        case _:
            path.write_bytes(b"".join(raw))
    return path


def statement(value: int | str, *, rank: str = "normal", snaktype: str = "value") -> dict[str, Any]:
    snak: dict[str, Any] = {"snaktype": snaktype}
    if snaktype == "value" and isinstance(value, int):
        item = {"entity-type": "item", "numeric-id": value, "id": f"Q{value}"}
        snak["datavalue"] = {"type": "wikibase-entityid", "value": item}
    elif snaktype == "value":
        snak["datavalue"] = {"type": "string", "value": value}
    return {"mainsnak": snak, "rank": rank, "type": "statement"}


def item(
    number: int,
    labels: dict[str, str],
    sitelinks: dict[str, str],
    claims: dict[str, list[dict[str, Any]]] | None = None,
    aliases: dict[str, list[str]] | None = None,
) -> str:
    """A line of a Wikidata dump. What is empty is an empty list, as it really is."""
    entity: dict[str, Any] = {
        "type": "item",
        "id": f"Q{number}",
        "labels": {k: {"language": k, "value": v} for k, v in labels.items()} or [],
        "aliases": {
            k: [{"language": k, "value": v} for v in values]
            for k, values in (aliases or {}).items()
        }
        or [],
        "claims": claims or [],
        "sitelinks": {k: {"site": k, "title": v, "badges": []} for k, v in sitelinks.items()} or [],
    }
    return json.dumps(entity, separators=(",", ":"))


def wikidata(lines: list[str]) -> str:
    return "[\n" + ",\n".join(lines) + "\n]\n"
