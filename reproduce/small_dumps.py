"""Wikipedia and Wikidata dumps for `--small`: an article for each entity of the testbed.

An article tells an entity's facts and some sentences of its country, with a link on every name; the
Wikidata dump has its sitelinks and the facts as claims.
"""

from __future__ import annotations

import bz2
import json
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from isoglot.languages import bcp47, wikipedia_database
from reproduce.small_text import WORLD, said_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.testbed.knowledge import MentionText

_PAGES = 4
"""Pages of the testbed in an article."""
_HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>{wiki}</dbname>
    <case>first-letter</case>
    <namespaces><namespace key="0" case="first-letter" /></namespaces>
  </siteinfo>
"""
_PAGE = """  <page>
    <title>{title}</title>
    <ns>0</ns>
    <id>{number}</id>
    <revision><id>{number}</id><model>wikitext</model>
      <text xml:space="preserve">{text}</text></revision>
  </page>
"""


def write_wikipedia(file: Path, language: str) -> None:
    """Write the articles of one language as a pages-articles dump."""
    names = WORLD.entity_names("en")
    about = {row.entity: row.text for row in WORLD.descriptions("en")}
    texts = WORLD.pages("en", _PAGES * len(names))
    pieces = [_HEADER.format(wiki=wikipedia_database(language))]
    for number, (entity, *pages) in enumerate(zip(names, *[texts] * _PAGES, strict=True), start=1):
        lines = [said_in(language, about[entity])]
        lines += [_linked(language, sentence, names) for page in pages for sentence in page]
        page = {"title": said_in(language, names[entity]), "text": "\n\n".join(lines)}
        pieces.append(
            _PAGE.format(number=number, **{name: escape(text) for name, text in page.items()})
        )
    pieces.append("</mediawiki>\n")
    _write(file, "".join(pieces))


def _linked(language: str, sentence: MentionText, names: dict[str, str]) -> str:
    """A sentence with a link on each name."""
    pieces, at = [], 0
    text = said_in(language, sentence.text)
    for mention in sorted(sentence.mentions, key=lambda one: one.start):
        title = said_in(language, names[mention.entity])
        shown = text[mention.start : mention.end]
        pieces += [text[at : mention.start], f"[[{title}|{shown}]]"]
        at = mention.end
    return "".join([*pieces, text[at:]])


def write_wikidata(file: Path, languages: Sequence[str]) -> None:
    """Write an item for each entity, with the articles of these languages and its facts."""
    names = WORLD.entity_names("en")
    numbers = {entity: number for number, entity in enumerate(names, start=1)}
    relations = {name: f"P{n}" for n, name in enumerate({t.relation for t in WORLD.triples()}, 1)}
    claims: dict[str, dict[str, list[dict[str, Any]]]] = {entity: {} for entity in names}
    for triple in WORLD.triples():
        statements = claims[triple.subject].setdefault(relations[triple.relation], [])
        statements.append(_statement(numbers[triple.object]))
    lines = []
    for entity, name in names.items():
        said = {language: said_in(language, name) for language in languages}
        item = {
            "type": "item",
            "id": f"Q{numbers[entity]}",
            "labels": {bcp47(code): {"value": text} for code, text in said.items()},
            "aliases": [],
            "claims": claims[entity] or [],
            "sitelinks": {
                wikipedia_database(code): {"title": text, "badges": []}
                for code, text in said.items()
            },
        }
        lines.append(json.dumps(item, separators=(",", ":")))
    _write(file, "[\n" + ",\n".join(lines) + "\n]\n")


def _statement(number: int) -> dict[str, Any]:
    value = {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}
    snak = {"snaktype": "value", "datavalue": {"type": "wikibase-entityid", "value": value}}
    return {"mainsnak": snak, "rank": "normal", "type": "statement"}


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(bz2.compress(text.encode()))
